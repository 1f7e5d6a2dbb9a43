use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use super::*;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn logged(level: &str, log: impl FnOnce()) -> String {
    let lines = Lines::default();
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level).unwrap());
    let subscriber = builder.json().flatten_event(true).with_writer(lines.clone()).finish().with(quiet());
    tracing::subscriber::with_default(subscriber, log);
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn no_level_lets_out_what_others_answered() {
    for level in [
        "warn",
        "info",
        "debug",
        "trace",
        "kube_client::client=trace",
        "trace,genai=trace",
        "genai::webc=trace,h2::codec=trace",
        "info,[model]=trace",
    ] {
        let text = logged(level, || {
            let _within = tracing::info_span!("model").entered();
            // As kube's client does with an answer that it cannot read.
            tracing::warn!(target: "kube_client::client", "{}, {:?}", "{\"data\":{\"key\":\"c2VjcmV0\"}}", "expected");
            tracing::trace!(target: "h2::codec", "authorization: Bearer c2VjcmV0");
            tracing::error!(target: "kube_client::client::builder", "failed with error");
            // As the model client does with what a provider answers.
            tracing::warn!(target: "genai::webc", "{}", "c2VjcmV0");
            tracing::error!("ours");
        });
        assert!(!text.contains("c2VjcmV0"), "{level}: {text}");
        assert!(
            level.contains("=trace,") || level.starts_with("kube") || text.contains("ours"),
            "{level}: {text}"
        );
    }
}

#[test]
fn a_level_that_hides_secrets_cannot_be_raised() {
    for level in ["off", "error", "warn"] {
        let text = logged(level, || tracing::info!(target: "hyper::proto", "a connection"));
        assert_eq!(text, "", "{level}");
    }
}

#[test]
fn a_level_lets_out_what_it_says() {
    let log = || {
        tracing::info!(agent = "argocd", "moved");
        tracing::debug!("details");
    };
    let info = logged("info", log);
    assert!(info.contains("\"message\":\"moved\"") && info.contains("\"agent\":\"argocd\""), "{info}");
    assert!(!info.contains("details") && logged("debug", log).contains("details"));
}

#[test]
fn a_level_that_is_none_is_named() {
    for level in
        ["nonsense", "inof", "inof,kube=debug", "info,kube", "caipe=loud", "info,kube=inof", "", " ", ","]
    {
        let error = filter(level).unwrap_err().to_string();
        assert!(error.contains(&format!("{level:?}")) && error.contains("give error, warn, info"), "{error}");
    }
    let error = filter("info, inof").unwrap_err().to_string();
    assert!(
        error.starts_with("failed to use \"info, inof\" as a log level: there is no level `inof`; "),
        "{error}"
    );
}

#[test]
fn a_filter_may_name_parts_of_the_program() {
    let log = || {
        tracing::info!(target: "kube::client", "of kube");
        tracing::debug!(target: "kube::client", "details of kube");
        tracing::debug!("ours");
    };
    for level in ["info,kube=debug", " INFO , kube=debug,", "kube=debug,info", "3,kube=4"] {
        let text = logged(level, log);
        assert!(
            text.contains("of kube") && text.contains("details of kube") && !text.contains("ours"),
            "{level}"
        );
    }
    for level in ["off", "[pass]=debug,info", "info,kube[span{name=1}]=trace"] {
        assert!(filter(level).is_ok(), "{level}");
    }
}

#[test]
fn a_panic_is_a_line() {
    let text = logged("info", || {
        let before = panic::take_hook();
        panic::set_hook(Box::new(log_panic));
        let panicked = panic::catch_unwind(|| panic!("the roof is on fire"));
        panic::set_hook(before);
        assert!(panicked.is_err());
    });
    assert!(text.contains("the roof is on fire") && text.contains("tests.rs"), "{text}");
}
