//! One door for every chore of the project.
fn main() {}
