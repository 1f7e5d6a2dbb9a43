//! What people get wrong in a resource, and what they read.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caipe_tests::cluster::objects::{SUPERVISORS, condition, message};
use caipe_tests::live::{self, Live, report_table};
use caipe_tests::programs::workspace;
use serde_json::Value;

#[test]
fn every_invalid_resource_is_refused_with_a_reason() -> Result<()> {
    live::with("invalid", async |live| {
        let mut rows = Vec::new();
        for file in examples()? {
            let (who, message) =
                refusal_of(live, &file).await.with_context(|| format!("{}", file.display()))?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            rows.push(format!(
                "| [{name}](../fixtures/invalid/{name}.yaml) | {who} | {} |",
                plain(live, &message)
            ));
        }
        report_table::holds("invalid", &rows)
    })
}

fn examples() -> Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(workspace().join("fixtures/invalid"))?.flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = all.collect();
    all.sort();
    Ok(all)
}

/// Who refuses an example, and in which words.
async fn refusal_of(live: &Live, file: &Path) -> Result<(&'static str, String)> {
    if let Err(refused) = live.kubectl(&["apply", "-f", &file.to_string_lossy()]) {
        let text = format!("{refused:#}");
        let message = text.split_once("failed: ").map_or(text.as_str(), |(_, message)| message);
        return Ok(("the API server", in_order(message)));
    }
    let name = "platform";
    let refused = |seen: &Value| {
        seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
            && (condition(seen, "Stalled").starts_with("True")
                || condition(seen, "Ready") == "False ReferenceMissing")
    };
    let seen = live.until("the operator refuses it", SUPERVISORS, name, refused).await?;
    live.kubectl(&["delete", "caipe", name])?;
    Ok(("the operator", format!("{}: {}", condition(&seen, "Ready"), message(&seen, "Ready"))))
}

/// The API server says the faults of one field's members in any order.
fn in_order(message: &str) -> String {
    let mut faults =
        message.lines().skip(1).map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    faults.sort_unstable();
    message.lines().take(1).chain(faults).collect::<Vec<_>>().join("\n")
}

/// On one line of a table, without what differs from one run to the next.
fn plain(live: &Live, text: &str) -> String {
    let text = text.replace(&live.namespace, "NAMESPACE").replace(&workspace().display().to_string(), ".");
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}
