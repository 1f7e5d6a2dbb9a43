//! Listeners of servers, for both families of addresses.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens on an address. `[::]` also accepts IPv4, and means `0.0.0.0` on a machine without IPv6.
///
/// # Errors
/// If the address cannot be bound.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    listen_with(address, open)
}

fn listen_with<T>(address: SocketAddr, open: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    match open(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && lacks_ipv6(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        opened => opened,
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.is_ipv6() {
        // Whatever `net.ipv6.bindv6only` says.
        set_ipv6_v6only(&socket, false)?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Whether the error means that the kernel has no IPv6, or no address of it.
fn lacks_ipv6(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
        || error.kind() == ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::{IpAddr, TcpListener as Blocking};

    use tokio::net::TcpStream;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// What is tried for an address if every attempt for IPv6 fails with this error.
    fn tried(text: &str, error: Errno) -> (Vec<String>, bool) {
        let tried = RefCell::new(Vec::new());
        let opened = listen_with(address(text), |address| {
            tried.borrow_mut().push(address.to_string());
            if address.is_ipv6() { Err(io::Error::from(error)) } else { Ok(()) }
        });
        (tried.into_inner(), opened.is_ok())
    }

    #[test]
    fn all_addresses_mean_those_of_ipv4_where_ipv6_is_missing() {
        let both = ["[::]:80".to_owned(), "0.0.0.0:80".to_owned()];
        for (error, text, attempts, is_open) in [
            (Errno::AFNOSUPPORT, "[::]:80", &both[..], true),
            (Errno::ADDRNOTAVAIL, "[::]:80", &both[..], true),
            (Errno::ADDRINUSE, "[::]:80", &both[..1], false),
            (Errno::ACCESS, "[::]:80", &both[..1], false),
            (Errno::ADDRNOTAVAIL, "[::1]:80", &["[::1]:80".to_owned()], false),
            (Errno::AFNOSUPPORT, "0.0.0.0:80", &both[1..], true),
        ] {
            assert_eq!(tried(text, error), (attempts.to_vec(), is_open), "{error} for {text}");
        }
    }

    /// Also run in network namespaces with one family only, where this machine has the other one no more.
    #[tokio::test]
    async fn all_addresses_are_those_of_both_families() {
        let listener = listen(address("[::]:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut answered = 0;
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            if Blocking::bind((ip, 0)).is_ok() {
                TcpStream::connect((ip, port)).await.unwrap_or_else(|error| panic!("{ip}: {error}"));
                answered += 1;
            }
        }
        assert!(answered > 0, "no loopback address");
    }

    #[tokio::test]
    async fn an_address_of_one_family_is_that_address() {
        let listener = listen(address("127.0.0.1:0")).unwrap();
        assert!(listener.local_addr().unwrap().is_ipv4());
        let again = listen(listener.local_addr().unwrap()).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
    }
}
