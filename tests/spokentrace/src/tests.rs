//! What the benchmark promises, on episodes as they are generated.

mod faults;
mod promises;
