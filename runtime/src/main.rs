//! The program on the device.
fn main() {}
