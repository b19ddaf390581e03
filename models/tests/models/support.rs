//! The real packs, and the recordings that they carry.

use std::path::PathBuf;

use earwitness_models::manifest::Kind;
use earwitness_models::pack::Pack;
use earwitness_models::parity;

/// Opens a real pack; a test that needs one fails without it.
pub fn pack(kind: Kind) -> Pack {
    variant(kind, None)
}

/// Opens a variant of a pack.
pub fn variant(kind: Kind, variant: Option<&str>) -> Pack {
    let root = std::env::var_os("EARWITNESS_PACKS")
        .map(PathBuf::from)
        .expect(
            "EARWITNESS_PACKS must name the model packs; `cargo xtask test` sets it, \
         `cargo xtask models` builds them and prints their folder",
        );
    Pack::open_variant(&root, kind, variant).unwrap_or_else(|error| panic!("{error}"))
}

/// Recording `case` of a pack's references, from -1 to 1.
pub fn recording(pack: &Pack, case: usize) -> Vec<f32> {
    parity::recordings(pack).unwrap().swap_remove(case)
}
