//! Turns that are refused, turns that teach, and filters that find them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_sound, by, by_new, key, store, to, turn, voice};
use earwitness_api::types::{Attachment, Record, RecordFilter, SessionId, SpeakerId};
use earwitness_store::{
    AppendError, KeyError, Learned, MAX_ADDRESSEES, MAX_TEXT_BYTES, NameError, NewRecord,
    SessionError, Speaking, Store, VOICEPRINTS_PER_SPEAKER, VoiceprintError,
};

/// The turn is refused with this error and leaves no trace.
fn refused(store: &Store, new: NewRecord) -> AppendError {
    let before = (store.stats().unwrap(), store.speakers().unwrap());
    let error = store.append(new).unwrap_err();
    let after = (store.stats().unwrap(), store.speakers().unwrap());
    assert_eq!(before, after, "{error}");
    assert_sound(store);
    error
}

fn speaking(session: SessionId, speaker: Speaking) -> NewRecord {
    NewRecord {
        speaker,
        ..turn(session, "x")
    }
}

#[test]
fn turns_that_point_nowhere_are_refused() {
    let (_, store, session) = store();
    let error = refused(&store, turn(SessionId(9), "x"));
    assert!(matches!(error, AppendError::NoSuchSession(SessionId(9))));
    let nobody = SpeakerId(9);
    let error = refused(&store, by(nobody, session, "x"));
    assert!(matches!(error, AppendError::NoSuchSpeaker(SpeakerId(9))));
    let new = NewRecord {
        addressees: vec![to(nobody)],
        ..by_new(session, "x")
    };
    let error = refused(&store, new);
    assert!(matches!(error, AppendError::NoSuchSpeaker(SpeakerId(9))));
}

#[test]
fn turns_that_are_too_long_or_backwards_are_refused() {
    let (_, store, session) = store();
    let longest = "x".repeat(MAX_TEXT_BYTES);
    assert!(store.append(turn(session, &longest)).is_ok());
    let error = refused(&store, turn(session, &(longest + "x")));
    assert!(matches!(error, AppendError::TooLong { .. }));
    let new = NewRecord {
        addressees: vec![to(SpeakerId(1)); MAX_ADDRESSEES + 1],
        ..turn(session, "x")
    };
    assert!(matches!(refused(&store, new), AppendError::TooLong { .. }));
    let attachment = Attachment {
        kind: "image".into(),
        caption: "x".repeat(5000),
    };
    let new = NewRecord {
        attachments: vec![attachment],
        ..turn(session, "x")
    };
    assert!(matches!(refused(&store, new), AppendError::TooLong { .. }));
    let new = NewRecord {
        start_ms: 1001,
        ..turn(session, "x")
    };
    assert!(matches!(
        refused(&store, new),
        AppendError::Backwards { .. }
    ));
}

#[test]
fn numbers_that_are_none_are_refused() {
    let (_, store, session) = store();
    let unknown = Speaking::Unknown { score: f32::NAN };
    let new_with = |learned| Speaking::New {
        score: 0.0,
        learned,
    };
    let error = refused(&store, speaking(session, unknown));
    assert!(matches!(error, AppendError::NotFinite(_)), "{error}");
    for value in [f32::INFINITY, f32::NAN] {
        let centroid = new_with(Learned {
            centroid: vec![value, 0.0, 0.0, 0.0],
            ..voice(1)
        });
        let error = refused(&store, speaking(session, centroid));
        let error = matches!(
            error,
            AppendError::Voiceprint(VoiceprintError::NotFinite(_))
        );
        assert!(error);
    }
    for scale in [f32::NAN, f32::INFINITY, -1.0] {
        let mut new = turn(session, "x");
        new.key.speaker.scale = scale;
        let error = refused(&store, new);
        assert!(matches!(error, AppendError::Key(KeyError::Scale(_))));
    }
}

#[test]
fn the_first_turn_fixes_the_form_of_keys_and_voices() {
    let (medium, store, session) = store();
    assert_eq!(store.keys().layout(), None);
    store.append(by_new(session, "x")).unwrap();
    drop(store);
    let store = Store::open_on(medium).unwrap();
    let layout = key(0).layout().unwrap();
    assert_eq!(store.keys().layout(), Some(layout));
    let mut new = turn(session, "x");
    new.key.temporal.values.push(1);
    let error = refused(&store, new);
    assert!(matches!(error, AppendError::Key(KeyError::Layout { .. })));
    for dim in [0, 3, 5] {
        let learned = Learned {
            centroid: vec![1.0; dim],
            ..voice(1)
        };
        let speaker = Speaking::New {
            score: 0.0,
            learned,
        };
        let error = refused(&store, speaking(session, speaker));
        assert!(matches!(
            error,
            AppendError::Voiceprint(VoiceprintError::Dim { expected: 4, found }) if found == dim
        ));
    }
}

#[test]
fn a_voice_learns_from_sure_turns_alone() {
    let (_, store, session) = store();
    let id = store
        .append(by_new(session, "a"))
        .unwrap()
        .speaker
        .speaker
        .unwrap();
    let weak = Speaking::Known {
        id,
        score: 0.5,
        learned: None,
    };
    store.append(speaking(session, weak)).unwrap();
    let voice_after = &store.voices().unwrap()[0];
    assert_eq!(voice_after.centroid, voice(1).centroid);
    assert_eq!((voice_after.turns, voice_after.speech_ms), (1, 1000));
    store.append(by(id, session, "bb")).unwrap();
    let voice_after = &store.voices().unwrap()[0];
    assert_eq!(voice_after.centroid, voice(2).centroid);
    assert_eq!((voice_after.turns, voice_after.speech_ms), (2, 2000));
    assert_eq!(store.speakers().unwrap()[0].records, 3);
    assert_eq!(store.voiceprints().unwrap().len(), 2);
}

#[test]
fn the_newest_voiceprints_of_a_speaker_are_given() {
    let (_, store, session) = store();
    let first = store.append(by_new(session, "x")).unwrap();
    let other = store.append(by_new(session, "other")).unwrap();
    let id = first.speaker.speaker.unwrap();
    let newest: Vec<_> = (0..VOICEPRINTS_PER_SPEAKER + 5)
        .map(|_| store.append(by(id, session, "xyz")).unwrap().id)
        .collect();
    let (own, others): (Vec<_>, Vec<_>) = store
        .voiceprints()
        .unwrap()
        .into_iter()
        .partition(|voiceprint| voiceprint.speaker == id);
    let turns: Vec<_> = own.iter().map(|own| own.turn.unwrap()).collect();
    let expected: Vec<_> = newest[5..].iter().map(|id| (*id, session)).collect();
    assert_eq!(turns, expected);
    assert_eq!(own[0].embedding, key(3).speaker.dequantize());
    assert_eq!(others[0].speaker, other.speaker.speaker.unwrap());
    assert_eq!(others.len(), 1);
}

#[test]
fn filters_agree_with_looking_at_every_record() {
    let (_, store, first) = store();
    let second = store.begin_session("second", 0).unwrap().id;
    let speaker = store.append(by_new(first, "x")).unwrap();
    let speaker = speaker.speaker.speaker.unwrap();
    for i in 0..40 {
        let session = if i % 3 == 0 { first } else { second };
        let mut new = turn(session, "x");
        if i % 4 == 0 {
            new = by(speaker, session, "x");
        }
        new.unix_ms = 100 + (i * 7) % 20;
        store.append(new).unwrap();
    }
    let all = store.records(RecordFilter::default()).unwrap();
    for bits in 0..64 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let filter = RecordFilter {
            session: on(0).then_some(second),
            speaker: on(1).then_some(speaker),
            after: on(5).then_some(all[2].id),
            from_unix_ms: on(2).then_some(105),
            to_unix_ms: on(2).then_some(115),
            limit: on(3).then_some(4),
            newest_first: on(4),
        };
        let mut expected: Vec<Record> = all
            .iter()
            .filter(|r| !on(0) || r.session == second)
            .filter(|r| !on(1) || r.speaker.speaker == Some(speaker))
            .filter(|r| !on(5) || r.id > all[2].id)
            .filter(|r| !on(2) || (105..115).contains(&r.unix_ms))
            .cloned()
            .collect();
        if on(4) {
            expected.reverse();
        }
        expected.truncate(if on(3) { 4 } else { usize::MAX });
        assert_eq!(store.records(filter).unwrap(), expected, "{filter:?}");
    }
}

#[test]
fn names_are_checked() {
    let (_, store, session) = store();
    let exists = store.begin_session("first", 1).unwrap_err();
    assert!(matches!(exists, SessionError::Exists(s) if s.id == session));
    let empty = store.begin_session("", 1).unwrap_err();
    assert!(matches!(empty, SessionError::Name));
    let nobody = store.name_speaker(SpeakerId(1), "Ada").unwrap_err();
    assert!(matches!(nobody, NameError::NoSuchSpeaker(_)));
    store.append(by_new(session, "x")).unwrap();
    let blank = store.name_speaker(SpeakerId(1), " \n").unwrap_err();
    assert!(matches!(blank, NameError::Name));
    let named = store.name_speaker(SpeakerId(1), " Ada ").unwrap();
    assert_eq!(named.name.as_deref(), Some("Ada"));
    assert_eq!(store.speakers().unwrap(), [named]);
}
