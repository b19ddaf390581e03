//! Streaming models on a language of five tones, whose weights follow from what
//! they are to say (`tests/tones/make.py`).

use std::f32::consts::TAU;
use std::fs;
use std::path::Path;

use earwitness_models::asr::{self, AsrError, Lexicon, Recognizer};
use earwitness_models::manifest::Manifest;
use earwitness_models::pack::Pack;
use earwitness_models::parity;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const BOTH: [&str; 2] = ["transducer", "ctc"];
/// Of `she`, `sell`, `s`, `sea` or `see`, and `shell`.
const HERTZ: [f32; 5] = [366.0, 831.0, 1500.0, 2460.0, 3839.0];
const PHRASE: [usize; 6] = [0, 1, 2, 3, 4, 2];
/// Samples in 10 ms.
const HOP: usize = 160;
/// Hops that a tone lasts, and a pause.
const TONE: usize = 20;
const PAUSE: usize = 10;

fn pack(name: &str) -> Pack {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tones");
    Pack::open_unsealed(&folder.join(name)).unwrap()
}

fn recognizer(name: &str) -> Box<dyn Recognizer + Send> {
    asr::load(&pack(name)).unwrap()
}

/// A copy of a pack in which something is changed: the manifest, or a file.
struct Changed {
    folder: TempDir,
    manifest: Manifest,
}

impl Changed {
    fn new(name: &str) -> Self {
        let original = pack(name);
        let folder = tempfile::tempdir().unwrap();
        for file in original.manifest.files.keys() {
            fs::copy(original.dir.join(file), folder.path().join(file)).unwrap();
        }
        Self {
            folder,
            manifest: original.manifest,
        }
    }

    fn setting(mut self, key: &str, value: impl Into<toml::Value>) -> Self {
        self.manifest.settings.insert(key.into(), value.into());
        self
    }

    fn file(mut self, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        let path = self.folder.path().join(name);
        let changed = change(fs::read(&path).unwrap());
        let hash = Sha256::digest(&changed);
        let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(path, changed).unwrap();
        self.manifest.files.insert(name.into(), hash);
        self
    }

    fn load(&self) -> Result<Box<dyn Recognizer + Send>, String> {
        let manifest = toml::to_string(&self.manifest).unwrap();
        fs::write(self.folder.path().join("manifest.toml"), manifest).unwrap();
        let pack = Pack::open_unsealed(self.folder.path()).unwrap();
        asr::load(&pack).map_err(|error| error.to_string())
    }

    fn refused(&self) -> String {
        self.load().err().expect("the pack must be refused")
    }
}

/// Tones with a pause before and after each, after so many hops of silence.
fn sound(tones: &[usize], silence: usize) -> Vec<f32> {
    let mut samples = vec![0.0; silence * HOP];
    for &tone in tones {
        samples.resize(samples.len() + PAUSE * HOP, 0.0);
        let wave = |at: usize| 0.3 * (TAU * HERTZ[tone] * at as f32 / 16_000.0).sin();
        samples.extend((0..TONE * HOP).map(wave));
    }
    samples.resize(samples.len() + PAUSE * HOP, 0.0);
    samples
}

#[test]
fn both_compute_what_the_original_graphs_did() {
    for name in BOTH {
        assert_eq!(parity::check(&pack(name)).unwrap().worst, 1.0, "{name}");
    }
}

#[test]
fn where_the_chunks_begin_makes_no_difference() {
    for name in BOTH {
        let mut recognizer = recognizer(name);
        for silence in 0..9 {
            let heard = recognizer.transcribe(&sound(&PHRASE, silence)).unwrap();
            assert_eq!(heard.text, "she sells sea shells", "{name}, {silence}");
        }
    }
}

#[test]
fn what_is_clear_only_afterwards_needs_a_beam() {
    let mut greedy = Changed::new("transducer")
        .setting("beam", 1)
        .load()
        .unwrap();
    let heard = greedy.transcribe(&sound(&PHRASE, 0)).unwrap();
    assert_eq!(heard.text, "she sells see shells");
}

#[test]
fn a_lexicon_decides_between_words_that_sound_alike() {
    let mut recognizer = recognizer("transducer");
    recognizer.prefer(Lexicon::new(["see", "xylophone"]));
    let heard = recognizer.transcribe(&sound(&PHRASE, 0)).unwrap();
    assert_eq!(heard.text, "she sells see shells");
}

#[test]
fn words_have_their_place_in_the_sound() {
    for name in BOTH {
        let heard = recognizer(name).transcribe(&sound(&PHRASE, 30)).unwrap();
        // The words begin with tones 0, 1, 3 and 4.
        for (word, tone) in heard.words.iter().zip([0, 1, 3, 4]) {
            let start = (30 + tone * (TONE + PAUSE) + PAUSE) * HOP;
            let off = word.samples.start.abs_diff(start);
            assert!(off <= 10 * HOP, "{name}: {word:?} is {off} samples off");
            assert!(word.samples.end > word.samples.start);
            assert!(word.probability > 0.3 && word.probability <= 1.0);
        }
    }
}

#[test]
fn a_transcript_goes_on_from_what_is_known() {
    for name in BOTH {
        let mut recognizer = recognizer(name);
        let free = recognizer.transcribe(&sound(&PHRASE, 0)).unwrap();
        let known: Vec<u32> = free.tokens[..3].iter().map(|token| token.id).collect();
        let forced = recognizer
            .transcribe_after(&known, &sound(&PHRASE, 0))
            .unwrap();
        assert_eq!(forced, free);
        // `shell` was not what came first, and stays.
        let shell = [free.tokens[4].id];
        let forced = recognizer
            .transcribe_after(&shell, &sound(&PHRASE, 0))
            .unwrap();
        assert_eq!(forced.text, "shell sells sea shells", "{name}");
    }
}

#[test]
fn silence_has_no_words_and_an_utterance_leaves_nothing_for_the_next() {
    for name in BOTH {
        let mut recognizer = recognizer(name);
        assert_eq!(recognizer.transcribe(&[0.0; 16_000]).unwrap().text, "");
        assert_eq!(recognizer.transcribe(&[]).unwrap().text, "");
        let fresh = recognizer.transcribe(&sound(&[0], 0)).unwrap();
        recognizer.transcribe(&sound(&PHRASE, 3)).unwrap();
        assert_eq!(recognizer.transcribe(&sound(&[0], 0)).unwrap(), fresh);
    }
}

#[test]
fn sound_that_cannot_be_taken_is_refused() {
    let mut recognizer = recognizer("ctc");
    let broken = [0.1, f32::NAN];
    let error = recognizer.transcribe(&broken).unwrap_err();
    assert!(matches!(error, AsrError::NotFinite { at: 1 }));
    let long = vec![0.1; recognizer.max_samples() + 1];
    let error = recognizer.transcribe(&long).unwrap_err();
    assert!(matches!(error, AsrError::TooLong { .. }));
}

#[test]
fn an_operator_that_nobody_implements_is_named() {
    let odd = |bytes: Vec<u8>| {
        let at = bytes
            .windows(3)
            .position(|window| window == b"Add")
            .unwrap();
        [&bytes[..at], b"Odd", &bytes[at + 3..]].concat()
    };
    let said = Changed::new("transducer")
        .file("joiner.onnx", odd)
        .refused();
    assert!(
        said.contains("joiner.onnx") && said.contains("\"Odd\""),
        "{said}"
    );
}

#[test]
fn files_and_settings_that_do_not_fit_are_refused() {
    let fewer = |bytes: Vec<u8>| bytes[..bytes.len() - "\u{2581}shell 7\n".len()].to_vec();
    for name in BOTH {
        let cases = [
            (
                Changed::new(name).setting("chunk_shift", 13),
                "`chunk_shift` 13",
            ),
            (
                Changed::new(name).setting("chunk_shift", 0),
                "`chunk_shift` 0",
            ),
            (Changed::new(name).setting("blank", 8), "`blank`"),
            (Changed::new(name).setting("beam", 0), "`beam`"),
            (Changed::new(name).setting("bema", 1), "bema"),
            (
                Changed::new(name).setting("architecture", "oracle"),
                "`architecture`",
            ),
            (Changed::new(name).file("tokens.txt", fewer), "7"),
            (
                Changed::new(name).file("tokens.txt", |_| b"a b\n".to_vec()),
                "line 1",
            ),
        ];
        for (changed, expected) in cases {
            let said = changed.refused();
            assert!(said.contains(expected), "{name}, {expected}: {said}");
        }
    }
}
