//! The network, which a command has only where the settings permit it.

use std::os::unix::net::UnixListener;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::sandbox::{Sandbox, directory};

pub(crate) async fn run(landlock: u8) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let greets = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            drop(client.write_all(b"hello").await);
        }
    });
    let connect = |address: &str| {
        format!("python3 -c 'import socket\ns = socket.socket({address}\nprint(\"got\", s.recv(9).decode())'")
    };
    let tcp = connect(&format!("); s.settimeout(10); s.connect((\"127.0.0.1\", {port}))"));
    let folder = directory();
    let path = folder.path().join("socket");
    let _socket = UnixListener::bind(&path).unwrap();
    let unix = connect(&format!("socket.AF_UNIX); s.settimeout(1); s.connect(\"{}\")", path.display()));
    for network in [false, true] {
        let sandbox = Sandbox::with(landlock, |settings| caipe_supervisor::tools::ShellSettings {
            network,
            ..settings
        });
        let output = sandbox.run(&tcp).await;
        assert_eq!(output.content.contains("got hello"), network, "{landlock}: {}", output.content);
        assert_eq!(output.exit_code == Some(0), network, "{landlock}: {}", output.content);
        let output = sandbox.run(&unix).await;
        assert_ne!(output.exit_code, Some(0), "{landlock}, {network}: {}", output.content);
        assert!(output.content.contains("PermissionError"), "{landlock}, {network}: {}", output.content);
    }
    greets.abort();
}
