//! Identities: merged, taken apart again, split and enrolled.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_sound, by, by_new, key, store, to, turn};
use earwitness_api::types::{
    Identity, MergeReason, RecordFilter, RecordId, Selection, SessionId, SpeakerId,
};
use earwitness_store::{
    AppendError, Block, EnrolError, Enrolment, Learned, MergeError, NewMerge, NewRecord, Speaking,
    SplitError, Store, UnmergeError, VOICEPRINTS_PER_SPEAKER, VoiceprintError, VoiceprintModel,
};

const RECONCILED: MergeReason = MergeReason::Reconciled {
    similarity: 0.6,
    runner_up: Some(0.2),
    cohesion: 0.7,
};

fn merge(store: &Store, from: SpeakerId, into: SpeakerId) -> Result<Identity, MergeError> {
    store.merge(NewMerge {
        into,
        from,
        why: RECONCILED,
        despite_names: false,
    })
}

fn voice(store: &Store, session: SessionId, text: &str) -> SpeakerId {
    let record = store.append(by_new(session, text)).unwrap();
    record.speaker.speaker.unwrap()
}

/// Each identity as its voices, the one that stands for it first.
fn groups(store: &Store) -> Vec<(u32, Vec<u32>)> {
    let identities = store.identities().unwrap().into_iter();
    identities
        .map(|one| {
            let members = one.members.iter().map(|id| id.0).collect();
            (one.speaker.id.0, members)
        })
        .collect()
}

fn said_by(store: &Store, speaker: SpeakerId) -> Vec<String> {
    let filter = RecordFilter {
        speaker: Some(speaker),
        ..RecordFilter::default()
    };
    let records = store.records(filter).unwrap().into_iter();
    records.map(|record| record.text).collect()
}

#[test]
fn a_merge_makes_one_person_of_two_voices_for_every_reader() {
    let (medium, store, session) = store();
    let (a, b) = (voice(&store, session, "a"), voice(&store, session, "bb"));
    store.append(by(b, session, "bbb")).unwrap();
    let heard = store
        .append(NewRecord {
            addressees: vec![to(b)],
            ..turn(session, "to b")
        })
        .unwrap();
    store.name_speaker(b, "Ada").unwrap();
    let voices = store.voices().unwrap();
    let one = merge(&store, b, a).unwrap();
    assert_eq!(one.members, [a, b]);
    assert_eq!(one.speaker.name.as_deref(), Some("Ada"));
    assert_eq!((one.speaker.id, one.speaker.records), (a, 3));
    drop(store);
    let store = Store::open_on(medium).unwrap();
    assert_eq!(store.identities().unwrap(), std::slice::from_ref(&one));
    assert_eq!(store.speakers().unwrap(), [one.speaker]);
    assert_eq!(store.stats().unwrap().speakers, 1);
    assert_eq!(said_by(&store, a), ["a", "bb", "bbb"]);
    assert_eq!(said_by(&store, b), said_by(&store, a));
    let heard = store.record(heard.id).unwrap().unwrap();
    assert_eq!(heard.addressees[0].speaker, Some(a));
    // A turn in the voice that was given up still counts for the whole.
    let more = store.append(by(b, session, "more")).unwrap();
    assert_eq!(more.speaker.speaker, Some(a));
    let after = store.voices().unwrap();
    assert_eq!((after[1].speaker, after[1].identity), (b, a));
    assert_eq!(after[0].centroid, voices[0].centroid);
    let prints = store.voiceprints().unwrap();
    let whose: Vec<_> = prints.iter().map(|v| (v.speaker.0, v.identity.0)).collect();
    assert_eq!(whose, [(1, 1), (2, 1), (2, 1), (2, 1)]);
    assert_sound(&store);
}

#[test]
fn chains_are_flat_and_every_link_can_be_undone() {
    for undone in 1..=3 {
        let (_, store, session) = store();
        for text in ["a", "bb", "ccc", "dddd"] {
            voice(&store, session, text);
        }
        for id in 1..=3 {
            // 1 into 2, then 2 with 1 into 3, then all into 4.
            merge(&store, SpeakerId(id), SpeakerId(id + 1)).unwrap();
        }
        assert_eq!(groups(&store), [(4, vec![1, 2, 3, 4])]);
        let merge = store.unmerge(SpeakerId(undone)).unwrap();
        assert_eq!((merge.number, merge.why), (undone, RECONCILED));
        let (low, high) = (1..=undone, undone + 1..=4);
        let expected = [(undone, low.collect()), (4, high.collect())];
        assert_eq!(groups(&store), expected);
        let again = store.unmerge(SpeakerId(undone)).unwrap_err();
        assert!(matches!(again, UnmergeError::NotMerged(_)));
        assert_sound(&store);
    }
}

#[test]
fn what_was_taken_apart_is_merged_by_hand_alone() {
    let (_, store, session) = store();
    let [a, b, c] = ["a", "bb", "ccc"].map(|text| voice(&store, session, text));
    merge(&store, b, a).unwrap();
    store.unmerge(b).unwrap();
    assert_eq!(store.apart().unwrap(), [(a, b)]);
    // Also not by way of a third.
    merge(&store, c, b).unwrap();
    let error = merge(&store, a, c).unwrap_err();
    assert!(matches!(error, MergeError::Apart(..)), "{error}");
    let by_hand = NewMerge {
        into: a,
        from: c,
        why: MergeReason::ByHand,
        despite_names: false,
    };
    assert_eq!(store.merge(by_hand).unwrap().members, [a, b, c]);
    assert_eq!(store.apart().unwrap(), []);
}

#[test]
fn merges_that_make_no_sense_are_refused() {
    let (_, store, session) = store();
    let (a, b) = (voice(&store, session, "a"), voice(&store, session, "bb"));
    let error = merge(&store, a, SpeakerId(9)).unwrap_err();
    assert!(matches!(error, MergeError::NoSuchSpeaker(SpeakerId(9))));
    assert!(matches!(merge(&store, a, a), Err(MergeError::Same(..))));
    store.name_speaker(a, "Ada").unwrap();
    store.name_speaker(b, "Bob").unwrap();
    let error = merge(&store, a, b).unwrap_err();
    assert!(matches!(&error, MergeError::Names { .. }));
    assert!(error.to_string().contains("\"Bob\""), "{error}");
    assert_eq!(store.merges().unwrap(), []);
    let forced = NewMerge {
        into: b,
        from: a,
        why: MergeReason::ByHand,
        despite_names: true,
    };
    assert_eq!(store.merge(forced).unwrap().speaker.name.unwrap(), "Bob");
    store.unmerge(a).unwrap();
    let names: Vec<_> = store
        .speakers()
        .unwrap()
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert_eq!(names, [Some("Ada".into()), Some("Bob".into())]);
    let why = MergeReason::Reconciled {
        similarity: f32::NAN,
        runner_up: None,
        cohesion: 1.0,
    };
    let error = store.merge(NewMerge { why, ..forced }).unwrap_err();
    assert!(matches!(error, MergeError::NotFinite));
}

#[test]
fn forgetting_a_person_forgets_every_voice_of_theirs() {
    let (_, store, session) = store();
    let [a, b, c] = ["a", "bb", "ccc"].map(|text| voice(&store, session, text));
    merge(&store, b, a).unwrap();
    merge(&store, c, a).unwrap();
    store.unmerge(c).unwrap();
    let result = store.forget(Selection::Speaker(b)).unwrap();
    assert_eq!((result.records, result.voiceprints), (2, 2));
    assert_eq!(groups(&store), [(c.0, vec![c.0])]);
    assert_eq!(
        (store.merges().unwrap(), store.apart().unwrap()),
        (vec![], vec![])
    );
    assert_sound(&store);
}

#[test]
fn a_voice_stays_as_long_as_its_person_has_something_left() {
    let (_, store, session) = store();
    let [a, b] = ["a", "bb"].map(|text| voice(&store, session, text));
    merge(&store, b, a).unwrap();
    store.forget(Selection::Record(RecordId(1))).unwrap();
    assert_eq!(groups(&store), [(a.0, vec![a.0, b.0])]);
    store.forget(Selection::Record(RecordId(2))).unwrap();
    assert_eq!(groups(&store), []);
    assert_eq!(store.merges().unwrap(), []);
    assert_sound(&store);
}

/// A turn whose voiceprint points along one axis.
fn along(axis: usize, speaker: Speaking, session: SessionId, text: &str) -> NewRecord {
    let mut voiceprint = [0.0; 4];
    voiceprint[axis] = 1.0;
    let mut new = NewRecord {
        speaker,
        ..turn(session, text)
    };
    new.key.speaker = Block::quantize(&voiceprint);
    new
}

#[test]
fn a_split_makes_a_voice_of_the_turns_it_is_given() {
    let (_, store, session) = store();
    let a = voice(&store, session, "mine");
    let known = || Speaking::Known {
        id: a,
        score: 0.5,
        learned: None,
    };
    let second = store
        .append(along(2, known(), session, "not mine"))
        .unwrap()
        .id;
    let third = store
        .append(along(3, known(), session, "nor this"))
        .unwrap()
        .id;
    let new = store.split(a, &[second, third, third]).unwrap();
    assert_eq!((new.id, new.records, new.name), (SpeakerId(2), 2, None));
    assert_eq!(said_by(&store, new.id), ["not mine", "nor this"]);
    assert_eq!(said_by(&store, a), ["mine"]);
    let half = 0.5f32.sqrt();
    let voices = store.voices().unwrap();
    let close = |(x, y): (&f32, &f32)| (x - y).abs() < 1e-6;
    assert!(
        voices[1]
            .centroid
            .iter()
            .zip(&[0.0, 0.0, half, half])
            .all(close)
    );
    assert_eq!((voices[1].turns, voices[1].speech_ms), (2, 2000));
    assert_eq!(store.voiceprints().unwrap().len(), 3);
    assert!(matches!(
        merge(&store, new.id, a),
        Err(MergeError::Apart(..))
    ));
    assert_sound(&store);
}

#[test]
fn splits_that_make_no_sense_are_refused() {
    let (_, store, session) = store();
    let a = voice(&store, session, "mine");
    let b = voice(&store, session, "another");
    let mut mute = by(a, session, "without a voiceprint");
    mute.speaker = Speaking::Known {
        id: a,
        score: 0.5,
        learned: None,
    };
    mute.key.speaker = Block::unknown(4);
    let mute = store.append(mute).unwrap().id;
    let split = |from, records: &[u64]| {
        let records: Vec<_> = records.iter().copied().map(RecordId).collect();
        store.split(from, &records).unwrap_err()
    };
    assert!(matches!(
        split(SpeakerId(9), &[1]),
        SplitError::NoSuchSpeaker(_)
    ));
    assert!(matches!(split(a, &[]), SplitError::Nothing));
    assert!(matches!(
        split(a, &[1, 2]),
        SplitError::NotTheirs(RecordId(2), _)
    ));
    assert!(matches!(
        split(a, &[7]),
        SplitError::NotTheirs(RecordId(7), _)
    ));
    assert!(matches!(split(b, &[2]), SplitError::Everything(_)));
    assert!(matches!(split(a, &[mute.0]), SplitError::NoVoice));
    // Nothing of all this used up an id.
    assert_eq!(voice(&store, session, "next"), SpeakerId(3));
}

fn enrolment(name: &str, count: usize) -> Enrolment {
    Enrolment {
        name: name.into(),
        embeddings: vec![vec![0.0, 1.0, 0.0, 0.0]; count],
        centroid: vec![0.0, 1.0, 0.0, 0.0],
        speech_ms: 4000,
    }
}

#[test]
fn an_enrolled_voice_needs_no_record_and_grows() {
    let (medium, store, session) = store();
    let one = store.enrol(&enrolment(" Ada ", 2)).unwrap();
    let ada = one.speaker.id;
    assert!(one.enrolled);
    assert_eq!(
        (one.speaker.name.unwrap(), one.speaker.records),
        ("Ada".into(), 0)
    );
    store
        .enrol(&enrolment("Ada", VOICEPRINTS_PER_SPEAKER))
        .unwrap();
    assert_eq!(store.voices().unwrap()[0].speech_ms, 8000);
    assert_eq!(store.voiceprints().unwrap().len(), VOICEPRINTS_PER_SPEAKER);
    store.append(by(ada, session, "hello")).unwrap();
    let print = store.voiceprints().unwrap().pop().unwrap();
    assert_eq!(print.turn, Some((RecordId(1), session)));
    store.forget(Selection::Record(RecordId(1))).unwrap();
    drop(store);
    let store = Store::open_on(medium).unwrap();
    assert_eq!(groups(&store), [(ada.0, vec![ada.0])]);
    store.forget(Selection::Speaker(ada)).unwrap();
    assert_eq!(
        (groups(&store), store.voiceprints().unwrap()),
        (vec![], vec![])
    );
    assert_sound(&store);
}

#[test]
fn enrolments_that_do_not_fit_are_refused() {
    let (_, store, session) = store();
    let refused = |enrolment: &Enrolment| store.enrol(enrolment).unwrap_err();
    assert!(matches!(refused(&enrolment("", 1)), EnrolError::Name(_)));
    assert!(matches!(refused(&enrolment("Ada", 0)), EnrolError::Nothing));
    let mut uneven = enrolment("Ada", 1);
    uneven.embeddings.push(vec![1.0; 3]);
    let error = refused(&uneven);
    assert!(matches!(
        error,
        EnrolError::Voiceprint(VoiceprintError::Dim { .. })
    ));
    let mut infinite = enrolment("Ada", 1);
    infinite.embeddings[0][1] = f32::INFINITY;
    let error = refused(&infinite);
    assert!(matches!(
        error,
        EnrolError::Voiceprint(VoiceprintError::NotFinite(_))
    ));
    for text in ["a", "bb"] {
        let id = voice(&store, session, text);
        store.name_speaker(id, "Eve").unwrap();
    }
    assert!(matches!(
        refused(&enrolment("Eve", 1)),
        EnrolError::Ambiguous(_)
    ));
    let longer = Enrolment {
        embeddings: vec![vec![1.0; 5]],
        centroid: vec![1.0; 5],
        ..enrolment("Ada", 1)
    };
    let error = refused(&longer);
    assert!(matches!(
        error,
        EnrolError::Voiceprint(VoiceprintError::Dim {
            expected: 4,
            found: 5
        })
    ));
    assert_sound(&store);
}

#[test]
fn voices_of_another_model_are_refused() {
    let (medium, store, session) = store();
    let model = |name: &str, dim| VoiceprintModel {
        name: name.into(),
        dim,
    };
    let ours = model("ecapa-tdnn", 4);
    store.use_voiceprint_model(&ours).unwrap();
    let mut longer = turn(session, "x");
    longer.key.speaker = Block::quantize(&[1.0; 5]);
    let error = store.append(longer).unwrap_err();
    assert!(matches!(
        error,
        AppendError::Voiceprint(VoiceprintError::Dim {
            expected: 4,
            found: 5
        })
    ));
    voice(&store, session, "hello");
    drop(store);
    let store = Store::open_on(medium).unwrap();
    assert_eq!(store.voiceprint_model().unwrap(), Some(ours.clone()));
    store.use_voiceprint_model(&ours).unwrap();
    for other in [model("ecapa-tdnn", 5), model("resnet34", 4)] {
        let error = store.use_voiceprint_model(&other).unwrap_err();
        assert!(matches!(&error, VoiceprintError::Model { .. }), "{error}");
    }
}

#[test]
fn a_model_that_does_not_fit_the_voices_there_is_refused() {
    let (_, store, session) = store();
    voice(&store, session, "hello");
    let five = VoiceprintModel {
        name: "ecapa-tdnn".into(),
        dim: 5,
    };
    let error = store.use_voiceprint_model(&five).unwrap_err();
    assert!(matches!(
        error,
        VoiceprintError::Dim {
            expected: 4,
            found: 5
        }
    ));
    assert_eq!(store.voiceprint_model().unwrap(), None);
    assert_eq!(key(0).speaker.values.len(), 4);
    let learned = Learned {
        centroid: vec![1.0; 4],
        speech_ms: 1,
    };
    let speaker = Speaking::New {
        score: 0.0,
        learned,
    };
    assert!(store.append(along(1, speaker, session, "fits")).is_ok());
}
