//! How a manifest spells a front end; renaming a key breaks every pack.
#![cfg(feature = "serde")]

use earwitness_dsp::fbank::{FbankOptions, Normalization, Window};

const MANIFEST: &str = r#"
sample_rate_hz = 16000
frame_length_ms = 25.0
frame_shift_ms = 10.0
mel_bins = 80
low_hz = 20.0
high_hz = 0.0
window = "hamming"
preemphasis = 0.97
remove_dc_offset = true
scale = 32768.0
normalization = "utterance_mean"
"#;

#[test]
fn options_are_read_and_written() {
    let options = FbankOptions {
        window: Window::Hamming,
        normalization: Normalization::UtteranceMean,
        ..FbankOptions::kaldi()
    };
    assert_eq!(toml::from_str::<FbankOptions>(MANIFEST).unwrap(), options);
    let written = toml::to_string(&options).unwrap();
    assert_eq!(toml::from_str::<FbankOptions>(&written).unwrap(), options);
}

#[test]
fn unknown_and_missing_keys_are_refused() {
    let unknown = format!("{MANIFEST}dither = 1.0\n");
    let error = toml::from_str::<FbankOptions>(&unknown).unwrap_err();
    assert!(error.to_string().contains("dither"), "{error}");
    let missing = MANIFEST.replace("scale = 32768.0", "");
    let error = toml::from_str::<FbankOptions>(&missing).unwrap_err();
    assert!(error.to_string().contains("scale"), "{error}");
    let misspelt = MANIFEST.replace("hamming", "Hamming");
    assert!(toml::from_str::<FbankOptions>(&misspelt).is_err());
}
