//! `serve --conformance` itself: never on by accident.

use anyhow::Result;
use caipe_tests::supervisor::Setup;

#[tokio::test]
async fn it_listens_on_loopback_only() -> Result<()> {
    let output = Setup::new()?
        .run(&["serve", "--conformance", "--listen", "0.0.0.0:0", "--allow-unauthenticated"])
        .await?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("loopback") | error.contains("127.0.0.1"), "{error}");
    Ok(())
}

#[tokio::test]
async fn its_flags_mean_nothing_without_it_and_are_not_advertised() -> Result<()> {
    let output = Setup::new()?.run(&["serve", "--conformance-authenticate"]).await?;
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let help = Setup::new()?.run(&["serve", "--help"]).await?;
    assert!(!String::from_utf8_lossy(&help.stdout).contains("conformance"));
    Ok(())
}
