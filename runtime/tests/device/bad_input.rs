//! Bad input gets a clear error and exit status 1, or a sensible result, and
//! nothing is lost by it.

use std::fs;

use crate::device::{Device, conversation, copy_of, text};
use earwitness_api::types::SpeakerId;

#[test]
fn bad_recordings_are_named_and_the_good_one_is_kept() {
    let device = Device::new();
    let good = device.recording("good.wav", &conversation(2));
    let bytes = fs::read(&good).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(device.path(name), bytes).unwrap();
        device.path(name).to_str().unwrap().to_owned()
    };
    let files = [
        device.path("missing.wav").to_str().unwrap().to_owned(),
        write("empty.wav", b""),
        write("text.wav", b"Dear diary, today I said nothing."),
        write("cut.wav", &bytes[..bytes.len() * 3 / 4]),
        good,
    ];
    let args: Vec<&str> = ["ingest"]
        .into_iter()
        .chain(files.iter().map(String::as_str))
        .collect();
    let output = device.run(&args);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    for name in [
        "missing.wav",
        "empty.wav is empty",
        "neither WAV nor FLAC",
        "cut short",
    ] {
        assert!(errors.contains(name), "{name} is not in\n{errors}");
    }
    assert!(
        errors.lines().last().unwrap().contains("4 of 5"),
        "{errors}"
    );
    let kept = device.records();
    let sessions: std::collections::BTreeSet<_> = kept.iter().map(|r| r.session).collect();
    assert_eq!(
        sessions.len(),
        2,
        "the good one and what there is of the cut one"
    );
}

#[test]
fn odd_sound_makes_no_record() {
    let device = Device::new();
    let square: Vec<f32> = (0..48_000)
        .map(|i| if i / 40 % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    let mut state = 1u32;
    let noise: Vec<f32> = (0..48_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect();
    for (name, samples) in [
        ("nothing.wav", &[][..]),
        ("one-sample.wav", &[0.5]),
        ("zero.wav", &[0.0; 48_000]),
        ("clipped.wav", &square),
        ("noise.wav", &noise),
    ] {
        device.works(&["ingest", &device.recording(name, samples)]);
    }
    assert!(device.records().is_empty(), "{:?}", device.records());
}

#[test]
fn clipped_speech_is_still_speech() {
    let device = Device::new();
    let loud: Vec<f32> = conversation(2)
        .iter()
        .map(|s| (s * 40.0).clamp(-1.0, 1.0))
        .collect();
    device.works(&["ingest", &device.recording("loud.wav", &loud)]);
    assert!(!device.records().is_empty());
}

#[test]
fn a_damaged_pack_is_refused_by_name_before_anything_runs() {
    let mut device = Device::new();
    let packs = device.path("packs");
    copy_of(&device.packs, &packs);
    let model = fs::read_dir(packs.join("voiceprint"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "onnx")
        })
        .unwrap();
    let mut bytes = fs::read(&model).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&model, bytes).unwrap();
    device.packs = packs;

    let recording = device.recording("talk.wav", &conversation(1));
    let error = device.fails(&["ingest", &recording]);
    assert!(
        error.contains(model.file_name().unwrap().to_str().unwrap()),
        "{error}"
    );
    assert!(!device.store().exists());
    assert!(text(&device.run(&["doctor"]).stdout).contains("WRONG"));
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(1));
    for foreign in [&b"SQLite format 3\0 and so on"[..], &[0; 8192], b"x"] {
        fs::write(device.store(), foreign).unwrap();
        for args in [
            &["ingest", &recording][..],
            &["memory", "list"],
            &["ask", "What?"],
        ] {
            let error = device.fails(args);
            assert!(error.contains("memory.redb"), "{error}");
        }
        assert_eq!(fs::read(device.store()).unwrap(), foreign);
    }
}

#[test]
fn what_does_not_exist_is_said_so() {
    let device = Device::new();
    assert!(device.fails(&["memory", "list"]).contains("no memory"));
    device.works(&["ingest", &device.recording("talk.wav", &conversation(2))]);
    for (args, word) in [
        (&["memory", "show", "999"][..], "999"),
        (&["memory", "list", "--session", "nowhere"], "nowhere"),
        (&["memory", "forget", "--speaker", "Nobody"], "Nobody"),
        (&["speakers", "name", "77", "Ford"], "77"),
        (&["ask", "--as", "Nobody", "What?"], "Nobody"),
        (&["ask", " "], "empty"),
    ] {
        let error = device.fails(args);
        assert!(error.contains(word), "{args:?}: {error}");
    }
    assert_ne!(device.records()[0].speaker.speaker, Some(SpeakerId(77)));
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    let device = Device::new();
    for args in [
        &["ingest"][..],
        &["ask"],
        &["memory", "forget"],
        &["frobnicate"],
    ] {
        assert_eq!(device.run(args).status.code(), Some(2), "{args:?}");
    }
}
