//! Everything that runs in tract, and the model packs it comes from.
