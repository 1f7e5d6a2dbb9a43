//! Enums whose variants have a text.

/// Defines an enum with `ALL` and `as_str`. The text of a variant is its name, unless another one is given.
macro_rules! text_enum {
    (@text $variant:ident) => { stringify!($variant) };
    (@text $variant:ident $text:literal) => { $text };
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $(=> $text:literal)?,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $crate::text_enum::text_enum!(@text $variant $($text)?),)+
                }
            }
        }
    };
}

pub(crate) use text_enum;
