//! Voiceprints of real voices.

use crate::support;
use earwitness_models::manifest::Kind;
use earwitness_models::operator_counts;
use earwitness_models::voiceprint::{VoiceprintEncoder, VoiceprintError};

/// Seven utterances; the first two are of one voice, the third and fourth are of others.
fn encoder() -> (VoiceprintEncoder, impl Fn(usize) -> Vec<f32>) {
    let pack = support::pack(Kind::Voiceprint);
    let encoder = VoiceprintEncoder::load(&pack).unwrap();
    (encoder, move |case| support::recording(&pack, case))
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn voices_are_told_apart_at_the_calibrated_threshold() {
    let (mut encoder, utterance) = encoder();
    let [one, again, second, third] =
        [0, 1, 2, 3].map(|case| encoder.embed(&utterance(case)).unwrap());
    let threshold = encoder.thresholds().update;
    assert!(
        dot(&one, &again) > threshold,
        "one voice: {}",
        dot(&one, &again)
    );
    let threshold = encoder.thresholds().match_;
    for (a, b) in [
        (&one, &second),
        (&one, &third),
        (&again, &second),
        (&second, &third),
    ] {
        assert!(dot(a, b) < threshold, "two voices: {}", dot(a, b));
    }
}

#[test]
fn thresholds_and_calibration_are_in_order() {
    let (encoder, _) = encoder();
    let thresholds = encoder.thresholds();
    assert!(thresholds.match_ <= thresholds.update);
    let calibration = encoder.calibration();
    assert!(calibration.probability(0.0) < 0.01 && calibration.probability(0.8) > 0.99);
    // Turns that may be merged are of one voice more likely than not, or nearly so.
    assert!(calibration.probability(thresholds.merge) > 0.4);
}

#[test]
fn a_voiceprint_has_length_one() {
    let (mut encoder, utterance) = encoder();
    for case in 0..4 {
        let voiceprint = encoder.embed(&utterance(case)).unwrap();
        assert_eq!(voiceprint.len(), encoder.dim());
        assert!((dot(&voiceprint, &voiceprint) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn the_level_of_the_sound_hardly_matters() {
    let (mut encoder, utterance) = encoder();
    let loud = utterance(0);
    let soft: Vec<f32> = loud.iter().map(|sample| sample * 0.1).collect();
    let [loud, soft] = [loud, soft].map(|samples| encoder.embed(&samples).unwrap());
    assert!(dot(&loud, &soft) > 0.99, "{}", dot(&loud, &soft));
}

#[test]
fn eight_frames_are_enough_and_less_is_an_error() {
    let (mut encoder, utterance) = encoder();
    let samples = utterance(0);
    encoder.embed(&samples[..1520]).unwrap();
    for length in [0, 1, 1519] {
        let refused = encoder.embed(&samples[..length]);
        let expected = VoiceprintError::TooShort {
            given: length,
            needed: 1520,
        };
        assert_eq!(refused.unwrap_err().to_string(), expected.to_string());
    }
}

#[test]
fn a_long_utterance_is_heard_in_its_middle() {
    let (mut encoder, utterance) = encoder();
    let middle = utterance(4);
    let longest = VoiceprintEncoder::LONGEST_S * 16_000;
    let middle: Vec<f32> = middle.iter().cycle().take(longest).copied().collect();
    let mut long = vec![0.25; 5_000];
    long.extend(&middle);
    long.extend([-0.25; 5_000]);
    assert_eq!(
        encoder.embed(&long).unwrap(),
        encoder.embed(&middle).unwrap()
    );
}

#[test]
fn broken_samples_give_no_voiceprint() {
    let (mut encoder, utterance) = encoder();
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut samples = utterance(0);
        samples[20_000] = broken;
        assert!(matches!(
            encoder.embed(&samples),
            Err(VoiceprintError::NotFinite(_))
        ));
    }
}

#[test]
fn silence_gives_a_voiceprint_of_nobody_or_none() {
    let (mut encoder, utterance) = encoder();
    let voice = encoder.embed(&utterance(0)).unwrap();
    if let Ok(silence) = encoder.embed(&[0.0; 32_000]) {
        assert!(dot(&voice, &silence) < encoder.thresholds().match_);
    }
}

/// Every convolution over time of the quantized model is a product of integers; what
/// is left in floating point works on one column.
#[test]
fn the_quantized_model_computes_in_integers() {
    let pack = support::variant(Kind::Voiceprint, Some("ecapa"));
    let counts = operator_counts(&pack, "model.onnx").unwrap();
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    assert!(count("QLinearConv u8") >= 40, "{counts:?}");
    assert_eq!(count("Im2col f32") + count("Conv f32"), 0, "{counts:?}");
    assert!(count("OptMatMul f32") <= 10, "{counts:?}");
    assert!(pack.read("model.onnx").unwrap().len() <= 3 << 20);
}

#[test]
fn the_small_model_refuses_what_is_too_short_for_it() {
    let pack = support::variant(Kind::Voiceprint, Some("ecapa"));
    let mut encoder = VoiceprintEncoder::load(&pack).unwrap();
    let samples = support::recording(&pack, 0);
    let shortest = encoder.embed(&samples[..1520]).unwrap();
    assert!((dot(&shortest, &shortest) - 1.0).abs() < 1e-5);
    assert!(matches!(
        encoder.embed(&samples[..1519]),
        Err(VoiceprintError::TooShort { .. })
    ));
}
