//! Modes of reading a text: the character set, the `sql_mode` and the server that decide it.
//!
//! A character of two bytes may end on one that means something by itself; which two are one is
//! said here. Of a set that is not known nothing can be said, and the lexer doubts the whole text.

/// Effect of the client's character set on the bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8: bytes from 0x80 on are always parts of letters.
    Utf8,
    /// One byte a character (latin1 and its kin): some bytes from 0x80 on are white space.
    OneByte,
    /// Character sets in which a character's last byte may equal a backslash, a backtick or an
    /// ASCII letter.
    MultiByte(Pairs),
    /// Not known, or one that moves ASCII punctuation (swe7): no text of it can be judged.
    Opaque,
}

impl Charset {
    /// The class of a character set, by the name that `character_set_client` shows (any case).
    #[must_use]
    pub fn of_name(name: &[u8]) -> Self {
        const UTF8: [&[u8]; 3] = [b"utf8mb4", b"utf8mb3", b"utf8"];
        const ONE_BYTE: [&[u8]; 25] = [
            b"latin1",
            b"latin2",
            b"latin5",
            b"latin7",
            b"ascii",
            b"binary",
            b"cp1250",
            b"cp1251",
            b"cp1256",
            b"cp1257",
            b"cp850",
            b"cp852",
            b"cp866",
            b"koi8r",
            b"koi8u",
            b"greek",
            b"hebrew",
            b"armscii8",
            b"tis620",
            b"geostd8",
            b"keybcs2",
            b"macce",
            b"macroman",
            b"dec8",
            b"hp8",
        ];
        const MULTI_BYTE: [(&[u8], Pairs); 9] = [
            (b"gbk", Pairs::Gbk),
            (b"gb18030", Pairs::Gbk),
            (b"big5", Pairs::Big5),
            (b"sjis", Pairs::Sjis),
            (b"cp932", Pairs::Sjis),
            (b"gb2312", Pairs::High),
            (b"ujis", Pairs::High),
            (b"eucjpms", Pairs::High),
            (b"euckr", Pairs::High),
        ];
        let listed = |list: &[&[u8]]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
        let pairs = MULTI_BYTE
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known));
        if listed(&UTF8) {
            Self::Utf8
        } else if listed(&ONE_BYTE) {
            Self::OneByte
        } else {
            pairs.map_or(Self::Opaque, |(_, pairs)| Self::MultiByte(*pairs))
        }
    }

    /// True if every byte of a text of it that looks like ASCII is a character by itself, as far as
    /// that matters: the last byte of a longer one is no quote and no slash in any set that a
    /// client may have (the lowest are the digits of gb18030), but a backslash or a backtick it may
    /// be. Where it is, tokens are cut right, but their texts are not what their bytes say.
    #[must_use]
    pub fn is_plain(self, sql: &[u8]) -> bool {
        match self {
            Self::Utf8 | Self::OneByte | Self::MultiByte(Pairs::High) => true,
            Self::MultiByte(pairs) => !pairs.hide_in(sql),
            Self::Opaque => false,
        }
    }
}

/// Pairs of bytes that are one character ("Character Sets" in MySQL's manual and the sets' own
/// definitions); those of four bytes in gb18030 have digits in these places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Last bytes that are letters at the lowest (euckr), or from 0x80 on (gb2312, ujis, eucjpms).
    High,
    /// sjis, cp932
    Sjis,
    /// gbk, gb18030
    Gbk,
    /// big5
    Big5,
}

impl Pairs {
    /// True if the first begins a character that does not go on with the second, be it one of four
    /// bytes.
    pub(super) fn breaks(self, first: u8, next: u8) -> bool {
        let leads = self.joins(first, 0x40);
        leads && !self.joins(first, next) && !next.is_ascii_digit()
    }

    /// True if these two are one character.
    pub(super) fn joins(self, first: u8, last: u8) -> bool {
        match self {
            Self::High => false,
            Self::Sjis => {
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                    && matches!(last, 0x40..=0x7e | 0x80..=0xfc)
            }
            Self::Gbk => matches!(first, 0x81..=0xfe) && matches!(last, 0x40..=0x7e | 0x80..=0xfe),
            Self::Big5 => matches!(first, 0xa1..=0xf9) && matches!(last, 0x40..=0x7e | 0xa1..=0xfe),
        }
    }

    /// True if a character of a text may end with what is a backslash or a backtick by itself. At
    /// an ASCII byte a character ends, whether it is one or the end of one, so the pairs are
    /// certain from there on; but for a backslash, which takes the byte behind it for itself.
    fn hide_in(self, sql: &[u8]) -> bool {
        let mut at = 0;
        while let Some(&byte) = sql.get(at) {
            let next = sql.get(at + 1).copied().unwrap_or(0);
            let joins = byte >= 0x80 && self.joins(byte, next);
            let hides = joins && matches!(next, b'\\' | b'`');
            if hides || (byte == b'\\' && next >= 0x80) {
                return true;
            }
            at += 1 + usize::from(joins);
        }
        false
    }
}

/// The server that will read the text: which names are its own functions depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Not known: only what every server has counts as built in.
    Unknown,
    /// MariaDB, version as `major * 10000 + minor * 100 + patch` (10.11.19 is 101119).
    MariaDb(u32),
    /// MySQL or Percona Server, version in the same form (8.4.6 is 80406).
    MySql(u32),
}

impl Server {
    /// True if it is MySQL or one of its kin, of any version.
    #[must_use]
    pub fn is_mysql(self) -> bool {
        matches!(self, Server::MySql(_))
    }
}

/// The session state that decides how a text is cut and what its names mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexMode {
    /// `sql_mode` has `ANSI_QUOTES` (status flag 0x8000 on MariaDB): `"x"` is a name.
    pub ansi_quotes: bool,
    /// `sql_mode` has `NO_BACKSLASH_ESCAPES` (status flag 0x200).
    pub no_backslash_escapes: bool,
    /// `sql_mode` has `IGNORE_SPACE`, or the client logged in with that capability.
    pub ignore_space: bool,
    /// The client logged in with CLIENT_NO_SCHEMA: `other.t` is looked up as `t`.
    pub no_schema: bool,
    /// The class of `character_set_client`.
    pub charset: Charset,
    /// Server that reads the text.
    pub server: Server,
}

impl Default for LexMode {
    /// The defaults of a new session, and no assumption about the server.
    fn default() -> Self {
        Self {
            ansi_quotes: false,
            no_backslash_escapes: false,
            ignore_space: false,
            no_schema: false,
            charset: Charset::Utf8,
            server: Server::Unknown,
        }
    }
}
