//! The HTTP client of the program.

/// HTTPS cannot be used here.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to prepare HTTPS: {0}; if the certificate authorities are missing, install them (ca-certificates), or set SSL_CERT_FILE to a \
     file with them"
)]
pub struct NoHttps(String);

/// A client with the defaults.
///
/// # Errors
/// If the system has no certificate authorities, as an image of one's own may.
pub(crate) fn https_client() -> Result<reqwest::Client, NoHttps> {
    reqwest::Client::builder().build().map_err(|error| {
        // Its own text does not say why.
        let source = std::error::Error::source(&error).map(ToString::to_string);
        NoHttps(source.unwrap_or_else(|| error.to_string()))
    })
}
