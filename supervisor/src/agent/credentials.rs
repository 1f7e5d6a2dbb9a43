//! The credentials of an agent, from the checks of its tool servers. Pure.

use caipe_crds::catalogue::{self, Entry};
use caipe_crds::internal_status::{CredentialReason, CredentialReport};

use crate::mcp::ToolsView;

/// The longest message, in characters.
const MESSAGE_CHARS: usize = 800;

/// The worst result of the checks of its servers, with where to get the credentials; none if none was checked.
pub(crate) fn credentials(view: &ToolsView, agent: &str) -> Option<CredentialReport> {
    let checked = view.servers.iter().filter_map(|server| server.credentials.as_ref());
    let worst = checked.max_by_key(|checked| checked.reason.severity())?;
    let message = match catalogue::find(agent).filter(|_| is_fault(worst.reason)) {
        Some(entry) => with_help(&worst.message, entry),
        None => worst.message.clone(),
    };
    Some(CredentialReport { message: message.chars().take(MESSAGE_CHARS).collect(), ..worst.clone() })
}

/// The fault of credentials in one line.
pub(crate) fn credential_fault(report: &CredentialReport) -> Option<String> {
    let what = match report.reason {
        CredentialReason::Accepted | CredentialReason::NotChecked => return None,
        CredentialReason::Failed => "the credentials cannot be checked",
        CredentialReason::Unreachable => "the API cannot be reached",
        CredentialReason::ScopeMissing => "the credentials lack a permission",
        CredentialReason::Refused => "the credentials are refused",
    };
    Some(format!("{what}: {}", report.message))
}

const fn is_fault(reason: CredentialReason) -> bool {
    !matches!(reason, CredentialReason::Accepted | CredentialReason::NotChecked)
}

fn with_help(message: &str, entry: &Entry) -> String {
    let help = |it: &catalogue::Variable| Some(format!("{}: {}", it.name, it.obtain.as_ref()?));
    let help: Vec<String> = entry.env.iter().filter_map(help).collect();
    if help.is_empty() { message.to_owned() } else { format!("{message}. Check {}", help.join("; ")) }
}

#[cfg(test)]
mod tests {
    use CredentialReason::{Accepted, Failed, NotChecked, Refused, ScopeMissing, Unreachable};

    use super::*;

    #[test]
    fn the_worst_server_decides_and_the_message_says_where_to_get_the_credentials() {
        let names: [(&str, &[&str]); 2] = [("a", &[]), ("b", &[])];
        let mut view = ToolsView::with_servers(&names);
        assert_eq!(credentials(&view, "github"), None);
        for (first, second, expected) in [
            (Accepted, None, Accepted),
            (Accepted, Some(Refused), Refused),
            (Refused, Some(ScopeMissing), Refused),
            (Unreachable, Some(ScopeMissing), ScopeMissing),
            (Failed, Some(NotChecked), Failed),
        ] {
            let report =
                |reason: CredentialReason| CredentialReport { reason, message: format!("{reason:?}") };
            (view.servers[0].credentials, view.servers[1].credentials) =
                (Some(report(first)), second.map(report));
            let found = credentials(&view, "github").unwrap();
            assert_eq!(found.reason, expected);
            let helps = found.message.contains("Check GITHUB_PERSONAL_ACCESS_TOKEN: https://");
            assert_eq!(helps, is_fault(expected), "{found:?}");
            assert_eq!(credential_fault(&found).is_some(), is_fault(expected), "{found:?}");
            assert!(found.message.starts_with(&format!("{expected:?}")), "{found:?}");
            let unknown = credentials(&view, "own").unwrap();
            assert_eq!(unknown.message, format!("{expected:?}"), "an agent that is not in the catalogue");
        }
    }
}
