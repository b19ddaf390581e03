//! What kind of failure a client is told of.
#![allow(clippy::unwrap_used)]

use earwitness::desk::answer;
use earwitness_api::{
    message::{ErrorCode, Request, Response},
    types::{Consent, SpeakerId},
};
use earwitness_store::Store;

#[test]
fn what_never_could_be_done_is_a_bad_request() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("memory.redb")).unwrap();
    let nobody = SpeakerId(7);
    for request in [
        Request::NameSpeaker {
            speaker: nobody,
            name: "Ada".into(),
        },
        Request::MergeSpeakers {
            into: nobody,
            from: SpeakerId(8),
            despite_names: false,
        },
        Request::UndoMerge { from: nobody },
        Request::SplitSpeaker {
            speaker: nobody,
            records: Vec::new(),
        },
        Request::SetConsent {
            speaker: nobody,
            consent: Consent::Given,
        },
    ] {
        let response = answer(&store, request);
        assert!(
            matches!(
                response,
                Response::Error {
                    code: ErrorCode::BadRequest,
                    ..
                }
            ),
            "{response:?}"
        );
    }
}
