//! TLS of a connection in the words of MySQL's clients (`--ssl-mode`).
//!
//! Users know five names from other programs; here they are read and written. What each comes down
//! to is for those who connect, and so is to refuse a mode that they do not have.

/// TLS of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SslMode {
    /// Without TLS.
    Disabled,
    /// Under TLS where the server offers it, without a look at its certificate.
    Preferred,
    /// Under TLS or not at all, without a look at the server's certificate.
    Required,
    /// TLS with a certificate that a trusted authority has signed.
    VerifyCa,
    /// Mode `VerifyCa`, and the certificate names the host that was asked for.
    VerifyIdentity,
}

impl SslMode {
    /// Each of them, the safest last.
    pub const ALL: [SslMode; 5] = [
        SslMode::Disabled,
        SslMode::Preferred,
        SslMode::Required,
        SslMode::VerifyCa,
        SslMode::VerifyIdentity,
    ];

    /// Name as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SslMode::Disabled => "DISABLED",
            SslMode::Preferred => "PREFERRED",
            SslMode::Required => "REQUIRED",
            SslMode::VerifyCa => "VERIFY_CA",
            SslMode::VerifyIdentity => "VERIFY_IDENTITY",
        }
    }

    /// Reads one, in upper or lower case.
    ///
    /// # Errors
    /// A sentence with all of them.
    pub fn read(text: &str) -> Result<SslMode, String> {
        let mode = SslMode::ALL
            .into_iter()
            .find(|mode| mode.name().eq_ignore_ascii_case(text));
        mode.ok_or_else(|| {
            let names = SslMode::ALL.map(SslMode::name).join(", ");
            format!("ssl-mode is '{text}'; expected one of {names}")
        })
    }
}
