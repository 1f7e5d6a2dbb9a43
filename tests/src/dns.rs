//! A name server that knows a few names, on an address of its own of this machine: programs ask on port 53 only.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use caipe_fixtures::requirements::Requirement;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// What a name server knows: the addresses of each name.
type Names = BTreeMap<String, Vec<Ipv4Addr>>;

/// A name server, until it is dropped.
#[derive(Debug)]
pub struct NameServer {
    address: IpAddr,
    asked: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl NameServer {
    /// One that knows these names; nothing if this user may not listen on port 53.
    pub async fn start(names: &[(&str, Ipv4Addr)]) -> Result<Option<Self>> {
        let Some(socket) = bind().await? else {
            Requirement::Root.unmet("only root may listen on port 53");
            return Ok(None);
        };
        let names = names.iter().map(|(name, address)| ((*name).to_owned(), vec![*address])).collect();
        let address = socket.local_addr()?.ip();
        let asked = Arc::default();
        let server = tokio::spawn(serve(socket, names, Arc::clone(&asked)));
        Ok(Some(Self { address, asked, server }))
    }

    /// Where it is, for `resolv.conf`.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The names that it was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Port 53 of the first address in a corner of the loopback network that nobody has.
async fn bind() -> Result<Option<UdpSocket>> {
    for last in 1..=250 {
        match UdpSocket::bind((Ipv4Addr::new(127, 53, 53, last), 53)).await {
            Ok(socket) => return Ok(Some(socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("no address for a name server is free")
}

async fn serve(socket: UdpSocket, names: Names, asked: Arc<Mutex<Vec<String>>>) {
    let mut packet = [0; 512];
    while let Ok((count, from)) = socket.recv_from(&mut packet).await {
        let Some((name, kind, question)) = question(&packet[..count]) else { continue };
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        let found = names.get(&name).map(Vec::as_slice);
        let reply = reply(&packet[..count], question, found, kind);
        drop(socket.send_to(&reply, from).await);
    }
}

/// The name that is asked for, the kind of record, and where the question ends (RFC 1035, 4.1.2).
fn question(packet: &[u8]) -> Option<(String, u16, usize)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?);
    Some((labels.join("."), kind, at + 4))
}

/// An answer with the addresses; without one if another kind of record is asked for, or the name is not known.
fn reply(packet: &[u8], question: usize, found: Option<&[Ipv4Addr]>, kind: u16) -> Vec<u8> {
    const A: u16 = 1;
    let addresses = found.filter(|_| kind == A).unwrap_or_default();
    let mut reply = packet[..question.min(packet.len())].to_vec();
    // An answer, recursion asked for and available; 3: there is no such name.
    reply[2] = 0x81;
    reply[3] = 0x80 | if found.is_none() { 3 } else { 0 };
    // More than these do not fit.
    let addresses = addresses.get(..addresses.len().min(16)).unwrap_or_default();
    reply[6..12].copy_from_slice(&[0, u8::try_from(addresses.len()).unwrap_or_default(), 0, 0, 0, 0]);
    for address in addresses {
        // The name of the question, type A, class IN, no time to live, four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    reply
}
