//! Whom the image trusts: the public authorities that it brings, or those that `SSL_CERT_FILE` names.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use caipe_tests::supervisor::Setup;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::image;

/// A web server with a certificate of an authority of its own.
struct Server {
    _child: Child,
    url: String,
}

/// Runs openssl in a directory.
async fn openssl(dir: &Path, line: &str) -> Result<()> {
    let command = Command::new("openssl").current_dir(dir).args(line.split(' ')).output().await;
    let output = command.context("failed to run openssl")?;
    ensure!(output.status.success(), "openssl {line}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

impl Server {
    /// Starts it; its authority's certificate is `ca.pem` in the directory.
    async fn start(dir: &Path) -> Result<Self> {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        let authority = format!("req -x509 {key} -subj /CN=test-authority -keyout ca.key -out ca.pem");
        let names = "-addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
        let signed = "-CA ca.pem -CAkey ca.key";
        let leaf = format!("req -x509 {key} -subj /CN=test {names} {signed} -keyout leaf.key -out leaf.pem");
        openssl(dir, &authority).await?;
        openssl(dir, &leaf).await?;
        let mut child = Command::new("openssl")
            .current_dir(dir)
            .args("s_server -accept 127.0.0.1:0 -cert leaf.pem -key leaf.key -www".split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.strip_prefix("ACCEPT ") {
                return Ok(Self { url: format!("https://{address}"), _child: child });
            }
        }
        anyhow::bail!("openssl does not say where it listens")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_trusted_only_if_an_authority_vouches_for_it() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    let setup = Setup::new()?.of_image(&image);
    let server = Server::start(setup.dir()).await?;
    let says = async |setup: &Setup| -> Result<String> {
        let output = setup.run(&["chat", "--url", &server.url, "hello"]).await?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let stranger = says(&setup).await?;
    ensure!(stranger.contains("failed to agree on TLS") && stranger.contains("UnknownIssuer"), "{stranger}");
    let file = setup.dir().join("ca.pem");
    let trusted = says(&setup.clone().env("SSL_CERT_FILE", file)).await?;
    // It is no agent, but it is the server that its certificate names.
    ensure!(trusted.contains("instead of JSON"), "{trusted}");
    Ok(())
}
