//! Words while they are spoken, sound that holds none, and turns that others
//! transcribed.

use std::{collections::BTreeMap, os::unix::net::UnixStream};

use earwitness::{
    answer::extractive::Extractive,
    hub::{Hub, HubOptions},
    listen::{Listener, Placement, Told},
    transcribe::LiveOptions,
};
use earwitness_api::{
    client::Client,
    message::{Partial, Request, Response, SpeakerRef, Transcript, Write},
    types::Record,
};
use jiff::tz::TimeZone;

use crate::device::{Device, conversation};

/// Everything that is told of a sound.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    partials: Vec<Partial>,
    transcripts: Vec<Transcript>,
    records: Vec<Record>,
}

/// Hears a sound that comes in chunks of so many samples.
fn hear(sound: &[f32], chunk: usize) -> Heard {
    let device = Device::new();
    let options = HubOptions {
        partials: Some(LiveOptions::default()),
        ..HubOptions::default()
    };
    let answerer = Box::new(Extractive::new(TimeZone::UTC));
    let hub = Hub::open(&device.packs, &device.store(), answerer, options).unwrap();
    let session = hub.store().begin_session("s", 0).unwrap();
    let mut listener = Listener::new(&hub, session, Placement::default()).unwrap();
    let mut heard = Heard::default();
    let mut tell = |told: Told<'_>| match told {
        Told::Partial(partial) => heard.partials.push(partial.clone()),
        Told::Transcript(said) => heard.transcripts.push(said.clone()),
        Told::Record(record) => heard.records.push(record.clone()),
    };
    for chunk in sound.chunks(chunk) {
        listener.push(chunk, &mut tell).unwrap();
    }
    listener.finish(&mut tell).unwrap();
    heard
}

#[test]
fn what_is_heard_does_not_depend_on_how_the_sound_arrives() {
    let sound = conversation(2);
    let whole = hear(&sound, sound.len());
    assert_eq!(whole.records.len(), 2);
    for chunk in [160, 1_777, 32_000] {
        assert_eq!(hear(&sound, chunk), whole, "chunks of {chunk} samples");
    }
}

#[test]
fn words_are_shown_while_they_are_spoken_and_stable_ones_stay() {
    let sound = conversation(4);
    let heard = hear(&sound, 8_000);
    let mut stable: BTreeMap<u64, &str> = BTreeMap::new();
    for partial in &heard.partials {
        let before = stable.insert(partial.start_ms, &partial.stable);
        assert!(partial.stable.starts_with(before.unwrap_or_default()));
    }
    assert_eq!(heard.transcripts.len(), heard.records.len());
    for (said, record) in heard.transcripts.iter().zip(&heard.records) {
        assert!(said.raw.starts_with(stable[&said.start_ms]), "{said:?}");
        assert_eq!((said.start_ms, &said.text), (record.start_ms, &record.text));
        let words: Vec<&str> = said.words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(words.join(" "), said.raw);
        let mut end = said.start_ms;
        for word in &said.words {
            assert!(word.start_ms >= end && word.end_ms <= said.end_ms);
            end = word.end_ms;
        }
    }
    let shown = stable.values().filter(|stable| !stable.is_empty()).count();
    assert!(shown >= 3, "{stable:?}");
}

#[test]
fn a_client_can_follow_what_is_heard() {
    let device = Device::new();
    let mut daemon = device.daemon(&["--pcm", "-", "--partials", "--session", "s"]);
    let client = Client::<UnixStream>::connect(&device.path("memory.redb.sock")).unwrap();
    let mut following = client.follow().unwrap();
    let sound = conversation(1);
    let pcm: Vec<u8> = sound
        .iter()
        .flat_map(|sample| ((sample * 32767.0) as i16).to_le_bytes())
        .collect();
    daemon.write(&pcm);
    let mut kinds = Vec::new();
    while !matches!(kinds.last(), Some(&"record")) {
        kinds.push(match following.next().unwrap().unwrap() {
            Response::Partial(_) => "partial",
            Response::Transcript(_) => "transcript",
            Response::Acknowledged(_) => "record",
            other => panic!("{other:?}"),
        });
    }
    assert!(kinds.len() > 4, "{kinds:?}");
    assert_eq!(kinds[kinds.len() - 2], "transcript");
    assert!(
        kinds[..kinds.len() - 2]
            .iter()
            .all(|&kind| kind == "partial")
    );
}

#[test]
fn a_turn_transcribed_elsewhere_becomes_a_record_like_any_other() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(2));
    let mut daemon = device.daemon(&["--wav", &recording, "--session", "s1"]);
    daemon.lines_until("\"summary\"");
    let mut client = Client::<UnixStream>::connect(&device.path("memory.redb.sock")).unwrap();
    let write = |speaker: Option<u32>, audio: Vec<i16>, text: &str| {
        Request::Write(Box::new(Write {
            session: "call".into(),
            unix_ms: 1_772_000_005_000,
            start_ms: 5_000,
            end_ms: 7_000,
            text: text.into(),
            speaker: speaker.map(|id| SpeakerRef::Id(earwitness_api::types::SpeakerId(id))),
            audio,
        }))
    };
    let mut written = |request| match client.call(request) {
        Ok(Response::Record(record)) => Ok(*record),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let known = written(write(Some(1), Vec::new(), " The plumber comes on Friday. ")).unwrap();
    assert_eq!(known.text, "The plumber comes on Friday.");
    assert_eq!(known.unix_ms, 1_772_000_005_000);
    assert_eq!(known.speaker.speaker.map(|id| id.0), Some(1));

    let first = device.records()[0].clone();
    let span = first.start_ms as usize * 16..first.end_ms as usize * 16;
    let voice = conversation(2)[span]
        .iter()
        .map(|s| (s * 32767.0) as i16)
        .collect();
    let heard = written(write(None, voice, "It is the blue one.")).unwrap();
    assert_eq!(heard.speaker.speaker, first.speaker.speaker);

    let nobody = written(write(None, Vec::new(), "Somebody said so.")).unwrap();
    assert_eq!(nobody.speaker.speaker, None);
    assert_eq!(device.records().last(), Some(&nobody));
    let answer = device.works(&["ask", "When does the plumber come?"]);
    assert!(answer.contains("Friday"), "{answer}");

    for (request, reason) in [
        (write(None, Vec::new(), "  "), "text"),
        (write(Some(99), Vec::new(), "Hm."), "no speaker"),
        (write(None, vec![0; 480_001], "Hm."), "30 s"),
    ] {
        let refusal = written(request).unwrap_err();
        assert!(refusal.contains(reason), "{refusal}");
    }
    assert_eq!(device.records().last(), Some(&nobody));
}
