//! The recognizer on real speech, and on sound that is none.

use crate::support;
use earwitness_models::asr::{self, AsrError, Lexicon, Recognizer};
use earwitness_models::manifest::Kind;
use earwitness_models::pack::Pack;

fn recognizer() -> (Box<dyn Recognizer + Send>, Pack) {
    let pack = support::pack(Kind::Asr);
    (asr::load(&pack).unwrap(), pack)
}

/// Noise from -amplitude to amplitude, the same for the same seed.
fn noise(seed: u32, amplitude: f32, samples: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * amplitude
    };
    (0..samples).map(|_| next()).collect()
}

#[test]
fn speech_becomes_text() {
    let (mut recognizer, pack) = recognizer();
    let transcript = recognizer
        .transcribe(&support::recording(&pack, 0))
        .unwrap();
    assert_eq!(
        transcript.text,
        "Ever tried, ever failed, no matter, try again, fail again, fail better."
    );
    for token in transcript.tokens {
        assert!(token.probability > 0.0 && token.probability <= 1.0);
    }
}

#[test]
fn an_utterance_leaves_nothing_for_the_next() {
    let (mut recognizer, pack) = recognizer();
    let (long, short) = (support::recording(&pack, 2), support::recording(&pack, 1));
    let fresh = recognizer.transcribe(&short).unwrap();
    recognizer.transcribe(&long).unwrap();
    assert_eq!(recognizer.transcribe(&short).unwrap(), fresh);
}

/// Tones of such frequencies (in Hz) and amplitudes together.
fn tones(parts: &[(f32, f32)]) -> Vec<f32> {
    let at = |sample: usize, hertz: f32| sample as f32 / 16_000.0 * hertz * std::f32::consts::TAU;
    let value = |sample| {
        parts
            .iter()
            .map(|&(hertz, level)| level * at(sample, hertz).sin())
            .sum()
    };
    (0..5 * 16_000).map(value).collect()
}

#[test]
fn words_have_their_place_in_the_sound() {
    let (mut recognizer, pack) = recognizer();
    let speech = support::recording(&pack, 0);
    let late = [vec![0.0; 16_000], speech.clone()].concat();
    let (now, later) = (
        recognizer.transcribe(&speech).unwrap(),
        recognizer.transcribe(&late).unwrap(),
    );
    assert_eq!(now.text, later.text);
    assert_eq!(now.words.len(), 12);
    let mut end = 0;
    for (word, moved) in now.words.iter().zip(&later.words) {
        assert!(word.samples.start >= end && word.samples.end <= speech.len());
        end = word.samples.end;
        let shift = moved.samples.start.abs_diff(word.samples.start + 16_000);
        assert!(
            shift < 3_200,
            "{word:?} is {shift} samples off in {moved:?}"
        );
        assert!(word.probability > 0.0 && word.probability <= 1.0);
    }
}

#[test]
fn a_transcript_goes_on_from_what_is_known() {
    let (mut recognizer, pack) = recognizer();
    let speech = support::recording(&pack, 0);
    let free = recognizer.transcribe(&speech).unwrap();
    let ids: Vec<u32> = free.tokens.iter().map(|token| token.id).collect();
    for words in [1, 4, 12] {
        let known = &ids[..free.words[words - 1].tokens.end];
        let forced = recognizer.transcribe_after(known, &speech).unwrap();
        assert_eq!(forced.text, free.text);
    }
    // `Ever failed` is not what is heard, and stays.
    let other = &ids[free.words[0].tokens.start..free.words[0].tokens.end];
    let other = [other, &ids[free.words[3].tokens.clone()]].concat();
    let forced = recognizer.transcribe_after(&other, &speech).unwrap();
    assert_eq!(forced.tokens[0].id, other[0]);
    assert!(forced.text.starts_with("Ever failed"), "{}", forced.text);
    let silence = recognizer.transcribe_after(&other, &[0.0; 8_000]).unwrap();
    assert_eq!(silence.tokens.len(), other.len());
}

#[test]
fn a_lexicon_decides_between_like_sounding_words_only() {
    let (mut recognizer, pack) = recognizer();
    let speech = support::recording(&pack, 0);
    let free = recognizer.transcribe(&speech).unwrap();
    recognizer.prefer(Lexicon::new(["Carol", "Bartholomew", "Xanthippe"]));
    assert_eq!(recognizer.transcribe(&speech).unwrap(), free);
}

#[test]
fn sound_without_speech_gives_no_text() {
    let (mut recognizer, _) = recognizer();
    let silence = vec![0.0; 5 * 16_000];
    let hum: Vec<(f32, f32)> = (1..12).map(|k| (50.0 * k as f32, 0.1 / k as f32)).collect();
    let sounds = [
        silence,
        noise(1, 0.005, 5 * 16_000),
        noise(2, 0.05, 5 * 16_000),
        noise(3, 0.5, 5 * 16_000),
        tones(&[(220.0, 0.3)]),
        tones(&[(440.0, 0.3)]),
        tones(&[(1000.0, 0.1)]),
        tones(&[(220.0, 0.1), (277.0, 0.1), (330.0, 0.1)]),
        tones(&hum),
    ];
    for (i, sound) in sounds.iter().enumerate() {
        let transcript = recognizer.transcribe(sound).unwrap();
        assert_eq!(transcript.text, "", "sound {i}: {:?}", transcript.tokens);
    }
}

#[test]
fn a_sound_too_short_for_a_word_gives_no_text() {
    let (mut recognizer, pack) = recognizer();
    let speech = support::recording(&pack, 0);
    let loudest = (0..speech.len()).max_by(|&a, &b| speech[a].abs().total_cmp(&speech[b].abs()));
    for samples in [0, 1, 800] {
        let sound = &speech[loudest.unwrap()..][..samples];
        assert_eq!(
            recognizer.transcribe(sound).unwrap().text,
            "",
            "{samples} samples"
        );
    }
}

#[test]
fn a_short_word_among_silence_is_heard() {
    let (mut recognizer, pack) = recognizer();
    let speech = support::recording(&pack, 6);
    let transcript = recognizer.transcribe(&speech[..2 * 16_000]).unwrap();
    assert!(
        transcript.text.starts_with("Do you hear me"),
        "{}",
        transcript.text
    );
}

#[test]
fn samples_far_beyond_full_scale_give_no_text() {
    let (mut recognizer, _) = recognizer();
    let sound = noise(5, f32::MAX, 2 * 16_000);
    assert_eq!(recognizer.transcribe(&sound).unwrap().text, "");
}

#[test]
fn what_it_cannot_take_is_refused_by_name() {
    let (mut recognizer, _) = recognizer();
    let mut broken = noise(4, 0.1, 16_000);
    broken[123] = f32::NAN;
    assert!(matches!(
        recognizer.transcribe(&broken),
        Err(AsrError::NotFinite { at: 123 })
    ));
    broken[99] = f32::INFINITY;
    assert!(matches!(
        recognizer.transcribe(&broken),
        Err(AsrError::NotFinite { at: 99 })
    ));
    let long = vec![0.1; recognizer.max_samples() + 1];
    let error = recognizer.transcribe(&long).unwrap_err();
    assert!(error.to_string().contains("cut it at a pause"), "{error}");
}
