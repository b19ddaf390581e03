//! How the memory is kept: encrypted, within limits, taken along, and switched off.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use earwitness_api::{client::Client, message::Response, types::Record};

use crate::device::{Device, conversation, pcm, records, text};

fn holds(file: &[u8], what: &str) -> bool {
    file.windows(what.len())
        .any(|bytes| bytes == what.as_bytes())
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn named(device: &Device, name: &str) -> String {
    device.path(name).to_str().unwrap().to_owned()
}

#[test]
fn an_encrypted_memory_shows_no_word_and_opens_with_its_key_alone() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(3));
    let [key, other, archive] = ["key", "other-key", "archive"].map(|name| named(&device, name));
    device.works(&["memory", "key", &key]);
    device.works(&["memory", "key", &other]);
    let digits = fs::read_to_string(&key).unwrap();
    assert!(device.fails(&["memory", "key", &key]).contains("new file"));
    assert_eq!(fs::read_to_string(&key).unwrap(), digits);
    assert_ne!(fs::read_to_string(&other).unwrap(), digits);
    assert_eq!(mode(&key), 0o600);

    let with_key = |args: &[&str]| device.works(&[&["--key-file", &key][..], args].concat());
    let spoken = records(&with_key(&["--json", "ingest", &recording]));
    with_key(&["speakers", "name", "1", "Zaphod"]);
    let sealed = fs::read(device.store()).unwrap();
    with_key(&["memory", "export", &archive]);
    let plain = fs::read(&archive).unwrap();
    let words = spoken.iter().flat_map(|record| record.text.split(' '));
    let mut secrets: Vec<&str> = words.filter(|word| word.len() >= 6).collect();
    assert!(secrets.len() > 3, "{spoken:?}");
    secrets.push("Zaphod");
    for secret in secrets {
        assert!(holds(&plain, secret), "{secret} was not exported");
        assert!(!holds(&sealed, secret), "{secret} is in the file");
    }

    let sealed = fs::read(device.store()).unwrap();
    let missing = named(&device, "no-key");
    for (key, reason) in [
        (&["--key-file", &other][..], "another key"),
        (&[], "encrypted"),
        (&["--key-file", &missing], "no-key"),
        (&["--key-file", &recording], "64 hexadecimal digits"),
    ] {
        for command in [
            &["memory", "list"][..],
            &["ingest", &recording],
            &["ask", "What?"],
            &["run", "--wav", &recording],
        ] {
            let error = device.fails(&[key, command].concat());
            assert!(error.contains(reason), "{command:?}: {error}");
        }
    }
    assert_eq!(fs::read(device.store()).unwrap(), sealed);

    let list = |key: &str| {
        let mut list = device.command(&["--json", "memory", "list"]);
        list.env("EARWITNESS_KEY", key).output().unwrap()
    };
    assert_eq!(list("12").status.code(), Some(1));
    assert_eq!(records(&text(&list(&digits).stdout)), spoken);
}

#[test]
fn a_memory_within_a_limit_keeps_the_newest_records() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(5));
    let spoken = records(&device.works(&["--json", "ingest", "--max-records", "2", &recording]));
    assert!(spoken.len() > 2);
    assert_eq!(device.records(), spoken[spoken.len() - 2..]);
    for limit in ["--max-records", "--max-disk", "--max-memory"] {
        assert_eq!(
            device.run(&["memory", "list", limit, "0"]).status.code(),
            Some(2)
        );
    }
}

#[test]
fn what_was_exported_is_imported_on_another_device() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(4));
    let [archive, voices, cut] = ["archive", "voices", "cut"].map(|name| named(&device, name));
    device.works(&["ingest", &recording]);
    device.works(&["speakers", "name", "1", "Ada"]);
    device.works(&["memory", "compact"]);
    device.works(&["memory", "export", &archive]);
    device.works(&["memory", "export", "--voiceprints", &voices]);
    let whole = fs::read(&archive).unwrap();
    assert_eq!(mode(&archive), 0o600);
    assert!(fs::read(&voices).unwrap().len() > 2 * whole.len());
    assert!(
        device
            .fails(&["memory", "export", &archive])
            .contains("new file")
    );
    assert_eq!(fs::read(&archive).unwrap(), whole);

    fs::write(&cut, &whole[..whole.len() * 2 / 3]).unwrap();
    let there = Device::new();
    for (foreign, reason) in [
        (&recording, "no Earwitness archive"),
        (&cut, "of the archive is wrong"),
        (&named(&device, "nowhere"), "cannot read"),
    ] {
        let error = there.fails(&["memory", "import", foreign]);
        assert!(error.contains(reason), "{error}");
        assert!(!there.store().exists());
    }
    there.works(&["memory", "import", &archive]);
    assert_eq!(there.records(), device.records());
    assert!(there.works(&["speakers", "list"]).contains("Ada"));
    assert!(
        there
            .fails(&["memory", "import", &voices])
            .contains("not empty")
    );
    assert_eq!(there.records(), device.records());
    assert!(there.works(&["memory", "verify"]).contains("agrees"));
}

#[test]
fn a_memory_that_is_off_is_left_alone() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(1));
    let sound = pcm(&conversation(2));
    let mut daemon = device.daemon(&["--pcm", "-"]);
    let is_off = |args: &[&str]| {
        let error = device.fails(args);
        assert!(error.contains("switched off"), "{args:?}: {error}");
    };
    device.works(&["memory", "off"]);
    is_off(&["memory", "list"]);
    device.works(&["memory", "on"]);
    daemon.write(&sound);
    crate::device::wait_for("a record", || !device.records().is_empty());

    device.works(&["memory", "off"]);
    let left = fs::read(device.store()).unwrap();
    daemon.write(&sound);
    drop(daemon.child.stdin.take());
    let lines = daemon.lines_until("\"summary\"").join("\n");
    is_off(&["memory", "list"]);
    is_off(&["memory", "forget", "--record", "1"]);
    daemon.kill();
    for args in [
        &["memory", "list"][..],
        &["memory", "compact"],
        &["ask", "What?"],
        &["ingest", &recording],
        &["run", "--wav", &recording],
    ] {
        is_off(args);
    }
    assert!(
        fs::read(device.store()).unwrap() == left,
        "the file changed"
    );

    device.works(&["memory", "on"]);
    assert!(!Path::new(&named(&device, "memory.redb.off")).exists());
    assert_eq!(device.records(), records(&lines));
}

#[test]
fn a_daemon_forgets_guests_after_a_day_and_people_without_a_name_after_thirty() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(4));
    let silence = device.recording("silence.wav", &[0.0; 16_000]);
    device.works(&["ingest", "--start", "2026-03-02T18:00:00Z", &recording]);
    let spoken = device.records();
    let guest = spoken[0].speaker.speaker.unwrap();
    let (theirs, others): (Vec<_>, Vec<_>) = spoken
        .into_iter()
        .partition(|record| record.speaker.speaker == Some(guest));
    assert!(!theirs.is_empty() && !others.is_empty());
    device.works(&["speakers", "consent", &guest.0.to_string(), "guest"]);
    let kept_by = |args: &[&str], kept: &[_]| {
        let mut daemon = device.daemon(&[args, &["--wav", &silence]].concat());
        daemon.lines_until("\"summary\"");
        crate::device::wait_for("what is too old to go", || device.records() == kept);
        daemon.kill();
    };
    kept_by(&["--keep-unasked", "forever"], &others);
    let named = others[0].speaker.speaker.unwrap();
    device.works(&["speakers", "name", &named.0.to_string(), "Ada"]);
    let is_named = |record: &&Record| record.speaker.speaker == Some(named);
    let of_ada: Vec<Record> = others.iter().filter(is_named).cloned().collect();
    kept_by(&[], &of_ada);
    for wrong in ["0", "-1", "often"] {
        let flag = format!("--keep-unasked={wrong}");
        assert_eq!(
            device.run(&["memory", "list", &flag]).status.code(),
            Some(2)
        );
    }
}

/// What somebody says who refused reaches nobody: no record, no follower.
#[test]
fn words_of_who_refused_go_nowhere() {
    let device = Device::new();
    let sound = conversation(4);
    let recording = device.recording("talk.wav", &sound);
    device.works(&["ingest", "--session", "before", &recording]);
    let spoken = device.records();
    let refuser = spoken[0].speaker.speaker.unwrap();
    let words: Vec<String> = spoken
        .iter()
        .filter(|record| record.speaker.speaker == Some(refuser))
        .map(|record| record.text.clone())
        .collect();
    device.works(&["speakers", "consent", &refuser.0.to_string(), "refused"]);

    let mut daemon = device.daemon(&["--partials", "--pcm", "-", "--session", "after"]);
    let client = Client::connect(&device.path("memory.redb.sock")).unwrap();
    let following = client.follow().unwrap();
    daemon.write(&pcm(&sound));
    drop(daemon.child.stdin.take());
    let lines = daemon.lines_until("\"summary\"").join("\n");
    daemon.kill();
    let told: Vec<Response> = following.map_while(Result::ok).collect();
    let shown = format!("{told:?}");
    assert!(shown.contains("Acknowledged") && shown.contains("Transcript"));
    assert!(!shown.contains("Partial("), "{shown}");
    assert!(!words.is_empty());
    for said in words {
        assert!(!shown.contains(&said) && !lines.contains(&said), "{said}");
    }
}
