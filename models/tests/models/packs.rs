//! A pack that is not what it should be is refused by name before anything runs.
//! The packs here hold no model: what refuses them looks at none.

use std::fs;
use std::path::PathBuf;

use earwitness_models::manifest::Kind;
use earwitness_models::pack::{Pack, PackError};
use tempfile::TempDir;

const MODEL: &str = "not really a model";
const MODEL_SHA256: &str = "29a6a9f19463c8e9c592d2f06fa009fe46e351b618667e95eac63df77c56f404";

const MANIFEST: &str = r#"
format = 1
kind = "vad"
name = "made-up"
version = "1"
license = "MIT"
attribution = "nobody"
precision = "f32"
source = []

[front_end.windows]
sample_rate_hz = 16000
window_samples = 512
context_samples = 64

[output]
shape = [1]
meaning = "nothing"

[parity]
metric = "max_abs_difference"
bound = 0.001
measured = 0.0001

[files]
"model.onnx" = "MODEL_SHA256"
"#;

/// A root with one made-up `vad` pack.
struct Made {
    root: TempDir,
}

impl Made {
    fn new() -> Self {
        let made = Self {
            root: TempDir::new().unwrap(),
        };
        fs::create_dir(made.dir()).unwrap();
        fs::write(made.dir().join("model.onnx"), MODEL).unwrap();
        made.write_manifest(|manifest| manifest);
        made
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("vad")
    }

    fn write_manifest(&self, change: impl Fn(String) -> String) {
        let manifest = MANIFEST.replace("MODEL_SHA256", MODEL_SHA256);
        fs::write(self.dir().join("manifest.toml"), change(manifest)).unwrap();
    }

    fn replaced(from: &str, to: &str) -> Self {
        let made = Self::new();
        made.write_manifest(|manifest| {
            assert!(manifest.contains(from), "{from} is not in the manifest");
            manifest.replace(from, to)
        });
        made
    }

    fn open(&self) -> Result<Pack, PackError> {
        Pack::open(self.root.path(), Kind::Vad)
    }

    /// The error, which must name the pack's folder.
    fn refusal(&self) -> PackError {
        let error = self.open().expect_err("the pack should be refused");
        let folder = self.dir().display().to_string();
        assert!(
            error.to_string().contains(&folder),
            "`{error}` does not name {folder}"
        );
        error
    }
}

#[test]
fn an_intact_pack_opens_and_gives_its_files() {
    let pack = Made::new().open().unwrap();
    assert_eq!(pack.manifest.kind, Kind::Vad);
    assert_eq!(pack.manifest.name, "made-up");
}

#[test]
fn files_are_read_by_the_names_in_the_manifest_only() {
    let made = Made::new();
    let pack = made.open().unwrap();
    assert_eq!(pack.read("model.onnx").unwrap(), MODEL.as_bytes());
    fs::write(made.dir().join("other.onnx"), MODEL).unwrap();
    assert!(matches!(
        pack.read("other.onnx"),
        Err(PackError::Unlisted { .. })
    ));
}

#[test]
fn every_flipped_byte_of_a_file_is_noticed() {
    let made = Made::new();
    for at in 0..MODEL.len() {
        let mut bytes = MODEL.as_bytes().to_vec();
        bytes[at] ^= 1;
        fs::write(made.dir().join("model.onnx"), bytes).unwrap();
        let error = made.refusal();
        assert!(
            matches!(&error, PackError::Hash { file, .. } if file == "model.onnx"),
            "{error}"
        );
    }
}

#[test]
fn a_truncated_file_is_noticed() {
    let made = Made::new();
    fs::write(made.dir().join("model.onnx"), &MODEL[1..]).unwrap();
    assert!(matches!(made.refusal(), PackError::Hash { .. }));
}

#[test]
fn a_missing_file_is_named() {
    let made = Made::new();
    fs::remove_file(made.dir().join("model.onnx")).unwrap();
    assert!(matches!(made.refusal(), PackError::Io { file, .. } if file == "model.onnx"));
}

#[test]
fn a_missing_pack_says_how_to_build_it() {
    let made = Made::new();
    fs::remove_dir_all(made.dir()).unwrap();
    assert!(made.refusal().to_string().contains("cargo xtask models"));
}

#[test]
fn a_pack_of_another_kind_is_refused() {
    let error = Made::replaced(r#"kind = "vad""#, r#"kind = "asr""#).refusal();
    assert!(matches!(
        error,
        PackError::Kind {
            found: Kind::Asr,
            expected: Kind::Vad,
            ..
        }
    ));
}

#[test]
fn a_later_format_is_refused_whatever_else_it_holds() {
    let error = Made::replaced("format = 1", "format = 2\nnovelty = true").refusal();
    assert!(matches!(error, PackError::Format { found: 2, .. }));
}

#[test]
fn paths_out_of_the_pack_are_refused() {
    for path in [
        "../model.onnx",
        "/etc/hostname",
        "a/../../b",
        "./model.onnx",
        "",
        "..",
    ] {
        let error = Made::replaced(r#""model.onnx""#, &format!("{path:?}")).refusal();
        assert!(
            matches!(&error, PackError::Escape { file, .. } if file == path),
            "{path}: {error}"
        );
    }
}

#[test]
fn garbage_is_no_manifest() {
    for garbage in [
        "",
        "\0\u{1}garbage",
        "format = 1",
        "format = \"one\"",
        "[[[",
    ] {
        let made = Made::new();
        made.write_manifest(|_| garbage.into());
        assert!(
            matches!(made.refusal(), PackError::Malformed { .. }),
            "{garbage:?}"
        );
    }
}

#[test]
fn a_manifest_that_is_not_text_is_refused() {
    let made = Made::new();
    fs::write(made.dir().join("manifest.toml"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(matches!(made.refusal(), PackError::Io { file, .. } if file == "manifest.toml"));
}

#[test]
fn unknown_keys_are_refused() {
    for (known, misspelt) in [
        ("license = ", "licence = "),
        ("bound = ", "bond = "),
        ("window_samples", "window"),
        ("[front_end.windows]", "[front_end.panes]"),
        ("max_abs_difference", "max_difference"),
    ] {
        let error = Made::replaced(known, misspelt).refusal();
        assert!(
            matches!(error, PackError::Malformed { .. }),
            "{misspelt}: {error}"
        );
    }
}

#[test]
fn parity_must_have_been_measured_and_hold() {
    for unfit in ["", "measured = 0.01", "measured = nan"] {
        let error = Made::replaced("measured = 0.0001", unfit).refusal();
        assert!(
            matches!(error, PackError::Unsealed { .. }),
            "{unfit}: {error}"
        );
    }
}
