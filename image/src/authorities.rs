//! The certificate authorities that the image trusts: Mozilla's, of a pinned crate, so that the image has no
//! certificate of the machine that builds it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Characters of a line of PEM (RFC 7468).
const LINE: usize = 64;

/// All authorities, in the format of `/etc/ssl/certs/ca-certificates.crt`.
pub fn bundle() -> String {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|certificate| pem(certificate)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(certificate);
    let lines: Vec<_> = encoded.as_bytes().chunks(LINE).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn every_authority_is_read_back_and_can_be_trusted() {
        let bundle = bundle();
        let read = CertificateDer::pem_slice_iter(bundle.as_bytes());
        let certificates: Vec<CertificateDer<'_>> = read.collect::<Result<_, _>>().unwrap();
        assert!(certificates.len() > 100, "{}", certificates.len());
        let mut store = RootCertStore::empty();
        assert_eq!(store.add_parsable_certificates(certificates.clone()), (certificates.len(), 0));
        assert!(bundle.lines().all(|line| line.len() <= LINE));
    }
}
