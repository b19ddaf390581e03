//! Decisions about turns whose voiceprints are directions in a plane.

use proptest::prelude::*;

use earwitness_api::types::Consent;

use super::*;

const OPTIONS: AttributeOptions = AttributeOptions {
    match_at: 0.42,
    update_at: 0.48,
    doubtful_at: 0.25,
    margin: 0.02,
    update: Update::DurationWeighted(0.05),
    gate: QualityGate {
        speech_ms: 1000,
        level_dbfs: -60.0,
        clipped: 0.02,
    },
};

fn direction(degrees: f32) -> Vec<f32> {
    vec![degrees.to_radians().cos(), degrees.to_radians().sin()]
}

fn degrees_for(cosine: f32) -> f32 {
    cosine.acos().to_degrees()
}

fn voice(speaker: u32, identity: u32, degrees: f32) -> Voice {
    Voice {
        speaker: SpeakerId(speaker),
        identity: SpeakerId(identity),
        centroid: direction(degrees),
        speech_ms: 3000,
        turns: 2,
        enrolled: false,
        consent: Consent::default(),
    }
}

fn turn(voiceprint: &[f32], speech_ms: u32) -> Turn<'_> {
    Turn {
        voiceprint,
        quality: Quality {
            speech_ms,
            level_dbfs: -25.0,
            clipped: 0.0,
        },
        neighbour: None,
    }
}

fn decide(voices: &[Voice], degrees: f32, speech_ms: u32) -> Speaking {
    attribute(voices, &turn(&direction(degrees), speech_ms), &OPTIONS)
}

/// Who it is, and whether their voice learns.
fn known(speaking: &Speaking) -> Option<(u32, bool)> {
    match speaking {
        Speaking::Known { id, learned, .. } => Some((id.0, learned.is_some())),
        _ => None,
    }
}

#[test]
fn the_first_good_turn_opens_an_identity() {
    let Speaking::New { score, learned } = decide(&[], 30.0, 1500) else {
        panic!("not new");
    };
    assert_eq!((score, learned.speech_ms), (0.0, 1500));
    assert_eq!(learned.centroid, direction(30.0));
}

#[test]
fn between_the_thresholds_a_turn_is_known_and_teaches_nothing() {
    let voices = [voice(1, 1, 0.0)];
    let at = |cosine| decide(&voices, degrees_for(cosine), 2000);
    assert_eq!(known(&at(0.49)), Some((1, true)));
    assert_eq!(known(&at(0.47)), Some((1, false)));
    assert_eq!(known(&at(0.43)), Some((1, false)));
    assert!(matches!(at(0.41), Speaking::New { .. }));
}

#[test]
fn a_centroid_learns_by_seconds_of_speech() {
    let Speaking::Known {
        learned: Some(learned),
        ..
    } = decide(&[voice(1, 1, 0.0)], 40.0, 1000)
    else {
        panic!("nothing learned");
    };
    // 3 s at 0 degrees and 1 s at 40.
    let (x, y) = (3.0 + 40_f32.to_radians().cos(), 40_f32.to_radians().sin());
    let norm = (x * x + y * y).sqrt();
    assert!((learned.centroid[0] - x / norm).abs() < 1e-6);
    assert!((learned.centroid[1] - y / norm).abs() < 1e-6);
    assert_eq!(learned.speech_ms, 1000);
}

#[test]
fn an_old_voice_still_learns_and_a_fixed_one_never() {
    let mut old = voice(1, 1, 0.0);
    old.speech_ms = 3_600_000;
    let embedding = direction(40.0);
    let learn = |update| {
        let options = AttributeOptions { update, ..OPTIONS };
        match attribute(
            std::slice::from_ref(&old),
            &turn(&embedding, 1000),
            &options,
        ) {
            Speaking::Known { learned, .. } => learned.unwrap().centroid,
            other => panic!("{other:?}"),
        }
    };
    let ema = learn(Update::MovingAverage(0.05));
    assert_eq!(learn(Update::DurationWeighted(0.05)), ema);
    assert!(ema[1] > 0.03);
    assert_eq!(learn(Update::Never), direction(0.0));
}

#[test]
fn short_and_bad_sound_is_recognised_but_opens_and_teaches_nothing() {
    let voices = [voice(1, 1, 0.0)];
    assert_eq!(known(&decide(&voices, 10.0, 999)), Some((1, false)));
    assert_eq!(
        known(&decide(&voices, degrees_for(0.3), 999)),
        Some((1, false))
    );
    assert!(matches!(
        decide(&voices, 90.0, 999),
        Speaking::Unknown { .. }
    ));
    assert!(matches!(decide(&[], 0.0, 999), Speaking::Unknown { .. }));
    let embedding = direction(0.0);
    let mut loud = turn(&embedding, 5000);
    loud.quality.clipped = 0.5;
    assert_eq!(
        attribute(&[], &loud, &OPTIONS),
        Speaking::Unknown { score: 0.0 }
    );
}

#[test]
fn a_turn_between_two_persons_stays_unknown_and_teaches_nothing() {
    let voices = [voice(1, 1, 0.0), voice(2, 2, 60.0)];
    assert!(matches!(
        decide(&voices, 30.0, 3000),
        Speaking::Unknown { .. }
    ));
    assert_eq!(known(&decide(&voices, 20.0, 3000)), Some((1, true)));
}

#[test]
fn two_voices_of_one_person_are_no_ambiguity() {
    let voices = [voice(1, 1, 0.0), voice(2, 1, 60.0)];
    assert_eq!(known(&decide(&voices, 30.0, 3000)), Some((1, true)));
    let (asker, _) = recognise(&voices, &direction(31.0), &OPTIONS);
    assert_eq!(asker, Some(SpeakerId(1)));
}

#[test]
fn an_ambiguous_turn_rides_on_who_spoke_just_before() {
    let voices = [voice(1, 1, 0.0), voice(2, 2, 60.0), voice(3, 3, 180.0)];
    let embedding = direction(30.0);
    let after = |neighbour| {
        let neighbour = Some(SpeakerId(neighbour));
        let turn = Turn {
            neighbour,
            ..turn(&embedding, 3000)
        };
        known(&attribute(&voices, &turn, &OPTIONS))
    };
    assert_eq!(after(1), Some((1, false)));
    assert_eq!(after(2), Some((2, false)));
    assert_eq!(after(3), None);
}

#[test]
fn the_floor_is_held_for_a_short_pause() {
    let mut floor = Floor::default();
    assert_eq!(floor.neighbour(0), None);
    floor.pass(Some(SpeakerId(4)), 5000);
    assert_eq!(floor.neighbour(5600), Some(SpeakerId(4)));
    assert_eq!(floor.neighbour(6001), None);
    floor.pass(None, 7000);
    assert_eq!(floor.neighbour(7000), None);
}

#[test]
fn the_asker_of_a_question_is_named_only_if_clear() {
    let voices = [voice(1, 1, 0.0), voice(2, 2, 60.0)];
    assert_eq!(
        recognise(&voices, &direction(0.0), &OPTIONS),
        (Some(SpeakerId(1)), 1.0)
    );
    assert_eq!(recognise(&voices, &direction(30.0), &OPTIONS).0, None);
    assert_eq!(recognise(&voices, &[0.0, 0.0], &OPTIONS), (None, 0.0));
    assert_eq!(recognise(&[], &direction(0.0), &OPTIONS), (None, 0.0));
}

proptest! {
    /// Whatever a broken encoder gives, no voice is opened or changed by it.
    #[test]
    fn what_is_no_direction_is_nobody(
        broken in prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 30.0]),
        place in 0..4usize,
    ) {
        let mut embedding = vec![0.0; 4];
        embedding[place] = broken;
        let mut voice = voice(1, 1, 0.0);
        voice.centroid = vec![0.5; 4];
        let turn = turn(&embedding, 5000);
        prop_assert_eq!(attribute(&[voice], &turn, &OPTIONS), Speaking::Unknown { score: 0.0 });
    }

    /// What is learned has unit length and lies between what was known and heard.
    #[test]
    fn a_centroid_stays_a_direction(from in 0.0f32..360.0, off in -55.0f32..55.0, ms in 1000u32..20_000) {
        let speaking = decide(&[voice(1, 1, from)], from + off, ms);
        let Speaking::Known { learned: Some(learned), .. } = speaking else {
            return Err(TestCaseError::fail("nothing learned"));
        };
        let norm = dot_f32(&learned.centroid, &learned.centroid);
        prop_assert!((norm - 1.0).abs() < 1e-4);
        let closer = dot_f32(&learned.centroid, &direction(from + off));
        prop_assert!(closer >= off.to_radians().cos() - 1e-4);
    }
}
