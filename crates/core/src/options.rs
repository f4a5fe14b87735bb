//! Options of schemes: one declaration gives the struct, the parser, the help and the docs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use crate::refusal::Refusal;

/// A value as a configuration file or a command line gives it.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A word.
    Text(String),
}

impl Value {
    /// The value of a word typed on a command line: a number, `true`/`false`, or text.
    pub fn from_word(word: &str) -> Self {
        if let Ok(number) = word.replace('_', "").parse::<i64>() {
            return Self::Int(number);
        }
        match word {
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            _ => Self::Text(word.to_string()),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Text(t) => write!(f, "{t:?}"),
        }
    }
}

/// One line of a scheme's option table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionInfo {
    /// Name in configurations and vectors.
    pub key: &'static str,
    /// Unit, or empty.
    pub unit: &'static str,
    /// Default as text.
    pub default: String,
    /// What values it takes: `number`, `true or false`, or the words.
    pub values: String,
    /// What it means.
    pub doc: &'static str,
}

/// A set of options with defaults, made by [`options!`](crate::options!).
pub trait Options: Clone + Default + core::fmt::Debug + Send + Sync + 'static {
    /// All options with their units, defaults and meanings.
    fn schema() -> Vec<OptionInfo>;
    /// Sets one option.
    ///
    /// # Errors
    /// If there is no such option or the value does not fit.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), Refusal>;
    /// The values in force, by name.
    fn values(&self) -> Vec<(&'static str, String)>;
}

/// A type that an option can have.
pub trait OptionValue: Sized {
    /// The value, or what would be right instead.
    ///
    /// # Errors
    /// A text such as "a whole number from 0 on".
    fn take(value: &Value) -> Result<Self, String>;
    /// What it takes, for help.
    fn values() -> String;
    /// Back to text.
    fn show(&self) -> String;
}

impl OptionValue for u64 {
    fn take(value: &Value) -> Result<Self, String> {
        match value {
            Value::Int(n) if *n >= 0 => Ok(*n as u64),
            // Numbers past the largest `i64` come as words.
            Value::Text(word) => word.replace('_', "").parse().map_err(|_| ()),
            _ => Err(()),
        }
        .map_err(|()| "a whole number from 0 on".into())
    }
    fn values() -> String {
        "number".into()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for u32 {
    fn take(value: &Value) -> Result<Self, String> {
        match value {
            Value::Int(n) if u32::try_from(*n).is_ok_and(|n| n < u32::MAX) => Ok(*n as u32),
            _ => Err("a whole number from 0 to 4294967294".into()),
        }
    }
    fn values() -> String {
        "number".into()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for bool {
    fn take(value: &Value) -> Result<Self, String> {
        match value {
            Value::Bool(b) => Ok(*b),
            Value::Text(t) if t == "on" => Ok(true),
            Value::Text(t) if t == "off" => Ok(false),
            _ => Err("true or false".into()),
        }
    }
    fn values() -> String {
        "true, false".into()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// An option without a value takes its default from the device.
impl<T: OptionValue> OptionValue for Option<T> {
    fn take(value: &Value) -> Result<Self, String> {
        T::take(value).map(Some)
    }
    fn values() -> String {
        T::values()
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "-".into(), T::show)
    }
}

/// Declares an enum whose values are words of a configuration.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl $crate::options::OptionValue for $name {
            fn take(value: &$crate::options::Value) -> Result<Self, $crate::alloc::string::String> {
                if let $crate::options::Value::Text(word) = value {
                    $(if word == $word { return Ok(Self::$variant); })+
                }
                // `on` and `off` may come as truth values from TOML and JSON.
                if let $crate::options::Value::Bool(b) = value {
                    let word = if *b { "on" } else { "off" };
                    $(if word == $word { return Ok(Self::$variant); })+
                }
                Err($crate::alloc::format!("one of {}", Self::values()))
            }
            fn values() -> $crate::alloc::string::String {
                [$($word),+].join(", ")
            }
            fn show(&self) -> $crate::alloc::string::String {
                match self { $(Self::$variant => $crate::alloc::string::String::from($word)),+ }
            }
        }
    };
}

/// Declares the options of a scheme: `/// meaning` then `name: type [unit] = default, "shown default"`.
///
/// The shown default may be left out when the default itself says it.
#[macro_export]
macro_rules! options {
    ($(#[$doc:meta])* pub struct $name:ident {
        $(#[doc = $field_doc:literal] $field:ident : $ty:ty [$unit:literal] = $default:expr $(, shown $shown:literal)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name { $(#[doc = $field_doc] pub $field: $ty),* }
        impl Default for $name {
            fn default() -> Self { Self { $($field: $default),* } }
        }
        impl $crate::options::Options for $name {
            fn schema() -> $crate::alloc::vec::Vec<$crate::options::OptionInfo> {
                #[allow(unused_variables)]
                let defaults = Self::default();
                $crate::alloc::vec![$($crate::options::OptionInfo {
                    key: stringify!($field),
                    unit: $unit,
                    default: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut text = $crate::options::OptionValue::show(&defaults.$field);
                        $(text = $crate::alloc::string::String::from($shown);)?
                        text
                    },
                    values: <$ty as $crate::options::OptionValue>::values(),
                    doc: $field_doc.trim_ascii(),
                }),*]
            }
            fn set(&mut self, key: &str, value: &$crate::options::Value) -> Result<(), $crate::Refusal> {
                $(if key == stringify!($field) {
                    self.$field = <$ty as $crate::options::OptionValue>::take(value).map_err(|wanted| {
                        $crate::Refusal::new(key, $crate::alloc::format!("{key} = {value}: takes {wanted}"))
                    })?;
                    return Ok(());
                })*
                #[allow(clippy::useless_vec)]
                let known: $crate::alloc::vec::Vec<&str> = $crate::alloc::vec![$(stringify!($field)),*];
                Err($crate::options::unknown_option(key, &known))
            }
            fn values(&self) -> $crate::alloc::vec::Vec<(&'static str, $crate::alloc::string::String)> {
                $crate::alloc::vec![$((stringify!($field), $crate::options::OptionValue::show(&self.$field))),*]
            }
        }
    };
}

/// The error for an option that a scheme does not have.
pub fn unknown_option(key: &str, known: &[&str]) -> Refusal {
    let message = if known.is_empty() {
        format!("no option {key}: this scheme has none of its own")
    } else {
        format!("no option {key}: this scheme has {}", known.join(", "))
    };
    Refusal::new(key, message)
}

/// Options of a scheme that has none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NoOptions {}

impl Options for NoOptions {
    fn schema() -> Vec<OptionInfo> {
        Vec::new()
    }
    fn set(&mut self, key: &str, _value: &Value) -> Result<(), Refusal> {
        Err(unknown_option(key, &[]))
    }
    fn values(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    choice! {
        /// A colour.
        pub enum Colour { /// Red.
            Red = "red", /// Blue.
            Blue = "blue" }
    }
    options! {
        /// A set for the tests.
        pub struct Sample {
            /// How many.
            count: u32 ["blocks"] = 3;
            /// Which.
            colour: Colour [""] = Colour::Red;
            /// From the device.
            size: Option<u32> ["pages"] = None, shown "a quarter";
        }
    }

    #[test]
    fn a_seed_takes_all_of_64_bits() {
        let take = |word| u64::take(&Value::from_word(word)).ok();
        assert_eq!(take("0"), Some(0));
        assert_eq!(take("9223372036854775808"), Some(1 << 63));
        assert_eq!(take("18_446_744_073_709_551_615"), Some(u64::MAX));
        for word in ["18446744073709551616", "-1", "many", ""] {
            assert_eq!(take(word), None, "{word}");
        }
    }

    #[test]
    fn options_parse_and_describe_themselves() {
        let mut o = Sample::default();
        o.set("colour", &Value::from_word("blue")).unwrap();
        o.set("size", &Value::from_word("1_000")).unwrap();
        assert_eq!((o.count, o.colour, o.size), (3, Colour::Blue, Some(1000)));
        assert_eq!(
            o.set("colour", &Value::Int(1)).unwrap_err().message,
            "colour = 1: takes one of red, blue"
        );
        assert_eq!(
            o.set("kolour", &Value::Int(1)).unwrap_err().message,
            "no option kolour: this scheme has count, colour, size"
        );
        assert!(o.set("count", &Value::Int(-1)).is_err());
        let schema = Sample::schema();
        assert_eq!(
            (schema[2].default.as_str(), schema[0].unit, schema[0].doc),
            ("a quarter", "blocks", "How many.")
        );
    }
}
