//! The runtime computes what the original models do, and a pack that strays is
//! not sealed.

use crate::support;
use std::fs;

use earwitness_models::manifest::Kind;
use earwitness_models::parity::{self, ParityError};

#[test]
fn every_pack_computes_here_what_its_original_did() {
    let ecapa = support::variant(Kind::Voiceprint, Some("ecapa"));
    for pack in Kind::ALL.map(support::pack).iter().chain([&ecapa]) {
        let report = parity::check(pack).unwrap_or_else(|error| panic!("{error}"));
        assert!(!report.cases.is_empty(), "{}", pack.manifest.name);
    }
}

#[test]
fn a_pack_beyond_its_bound_is_not_sealed() {
    let original = support::pack(Kind::Vad);
    let folder = tempfile::tempdir().unwrap();
    for file in original.manifest.files.keys() {
        fs::copy(original.dir.join(file), folder.path().join(file)).unwrap();
    }
    let mut manifest = original.manifest;
    manifest.parity.bound = 1e-12;
    manifest.parity.measured = None;
    let path = folder.path().join("manifest.toml");
    let before = toml::to_string(&manifest).unwrap();
    fs::write(&path, &before).unwrap();
    assert!(matches!(
        parity::seal(folder.path()),
        Err(ParityError::Strays { .. })
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), before);

    manifest.parity.bound = 1e-3;
    fs::write(&path, toml::to_string(&manifest).unwrap()).unwrap();
    let report = parity::seal(folder.path()).unwrap();
    let sealed = fs::read_to_string(&path).unwrap();
    assert!(sealed.contains("measured = "), "{sealed}");
    assert!(report.worst > 1e-12 && report.worst < 1e-3);
}
