//! Options of schemes: one declaration generates the struct, the parser, the help and the docs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use crate::refusal::Refusal;

/// A value from a configuration file or a command line.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A boolean.
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

/// What a number in an option counts over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// Whatever its unit says.
    #[default]
    Own,
    /// The whole device: each die gets its share.
    Device,
}

/// Which device setting an unset option takes its value from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// The log blocks of the device (`device.log_percent`).
    LogBlocks,
}

/// Which values an option accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A whole number.
    Number,
    /// One of some words.
    OneOf(&'static [&'static str]),
}

impl Display for Takes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Number => f.write_str("number"),
            Self::OneOf(words) => f.write_str(&words.join(", ")),
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
    /// What a number is given for.
    pub scope: Scope,
    /// The device setting that fills it when it is unset.
    pub setting: Option<Setting>,
    /// Default as text.
    pub default: String,
    /// Which values it accepts.
    pub takes: Takes,
    /// Numbers worth trying on small devices; without any, the option keeps its default in random cases.
    pub samples: &'static [u64],
    /// What it means.
    pub doc: &'static str,
}

impl OptionInfo {
    /// Values worth trying on a small device with that many dies.
    pub fn words(&self, dies: u32) -> Vec<String> {
        match &self.takes {
            Takes::OneOf(words) => words.iter().map(ToString::to_string).collect(),
            Takes::Number => {
                let each = match self.scope {
                    Scope::Device => u64::from(dies),
                    Scope::Own => 1,
                };
                self.samples
                    .iter()
                    .map(|n| (n * each).to_string())
                    .collect()
            }
        }
    }

    /// The unit and what it counts over, as shown to users.
    pub fn unit_and_scope(&self) -> String {
        match self.scope {
            Scope::Own => self.unit.to_string(),
            Scope::Device => format!("{}, device", self.unit),
        }
    }
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
    /// Parses a value; an error says what would be accepted.
    ///
    /// # Errors
    /// A text such as "a whole number, 0 or more".
    fn take(value: &Value) -> Result<Self, String>;
    /// Which values it accepts.
    fn takes() -> Takes;
    /// Back to text.
    fn show(&self) -> String;
}

impl OptionValue for u64 {
    fn take(value: &Value) -> Result<Self, String> {
        match value {
            Value::Int(n) if *n >= 0 => Ok(*n as u64),
            // Numbers above the largest `i64` arrive as words.
            Value::Text(word) => word.replace('_', "").parse().map_err(|_| ()),
            _ => Err(()),
        }
        .map_err(|()| "a whole number, 0 or more".into())
    }
    fn takes() -> Takes {
        Takes::Number
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
    fn takes() -> Takes {
        Takes::Number
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
    fn takes() -> Takes {
        Takes::OneOf(&["true", "false"])
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
    fn takes() -> Takes {
        T::takes()
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
                // `on` and `off` may arrive as booleans from TOML and JSON.
                if let $crate::options::Value::Bool(b) = value {
                    let word = if *b { "on" } else { "off" };
                    $(if word == $word { return Ok(Self::$variant); })+
                }
                Err($crate::alloc::format!("one of {}", Self::takes()))
            }
            fn takes() -> $crate::options::Takes {
                $crate::options::Takes::OneOf(&[$($word),+])
            }
            fn show(&self) -> $crate::alloc::string::String {
                match self { $(Self::$variant => $crate::alloc::string::String::from($word)),+ }
            }
        }
    };
}

/// Declares the options of a scheme. Each is `/// meaning`, then `name: type ["unit"] = default`, then, where it needs
/// them and in this order:
///
/// - `shown "..."`: the default as shown to users, where the value does not say it;
/// - `samples [1, 2]`: numbers worth trying on devices of a few blocks, for tests;
/// - `scope Device`: it is given for the whole device;
/// - `setting LogBlocks`: the [setting](crate::options::Setting) of the device that fills it.
///
/// Options that several schemes share are a set of their own, included by `..field: Set;` before or after the others.
#[macro_export]
macro_rules! options {
    ($(#[$doc:meta])* pub struct $name:ident {
        $(..$before:ident : $before_set:ty;)*
        $(#[doc = $field_doc:literal] $field:ident : $ty:ty [$unit:literal] = $default:expr
            $(, shown $shown:literal)?
            $(, samples [$($sample:literal),* $(,)?])?
            $(, scope $scope:ident)?
            $(, setting $setting:ident)?;)*
        $(..$after:ident : $after_set:ty;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            $(#[doc = "Shared options."] pub $before: $before_set,)*
            $(#[doc = $field_doc] pub $field: $ty,)*
            $(#[doc = "Shared options."] pub $after: $after_set,)*
        }
        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($before: Default::default(),)*
                    $($field: $default,)*
                    $($after: Default::default(),)*
                }
            }
        }
        impl $crate::options::Options for $name {
            #[allow(clippy::vec_init_then_push, reason = "one push an option, and sets may follow")]
            fn schema() -> $crate::alloc::vec::Vec<$crate::options::OptionInfo> {
                #[allow(unused_variables)]
                let defaults = Self::default();
                #[allow(unused_mut)]
                let mut schema = $crate::alloc::vec::Vec::new();
                $(schema.extend(<$before_set as $crate::options::Options>::schema());)*
                $(schema.push($crate::options::OptionInfo {
                    key: stringify!($field),
                    unit: $unit,
                    scope: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut scope = $crate::options::Scope::Own;
                        $(scope = $crate::options::Scope::$scope;)?
                        scope
                    },
                    setting: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut setting = None;
                        $(setting = Some($crate::options::Setting::$setting);)?
                        setting
                    },
                    default: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut text = $crate::options::OptionValue::show(&defaults.$field);
                        $(text = $crate::alloc::string::String::from($shown);)?
                        text
                    },
                    takes: <$ty as $crate::options::OptionValue>::takes(),
                    samples: &[$($($sample),*)?],
                    doc: $field_doc.trim_ascii(),
                });)*
                $(schema.extend(<$after_set as $crate::options::Options>::schema());)*
                schema
            }
            fn set(&mut self, key: &str, value: &$crate::options::Value) -> Result<(), $crate::Refusal> {
                $(if $crate::options::has::<$before_set>(key) {
                    return $crate::options::Options::set(&mut self.$before, key, value);
                })*
                $(if key == stringify!($field) {
                    self.$field = <$ty as $crate::options::OptionValue>::take(value).map_err(|wanted| {
                        $crate::Refusal::new(key, $crate::alloc::format!("{key} = {value}: takes {wanted}"))
                    })?;
                    return Ok(());
                })*
                $(if $crate::options::has::<$after_set>(key) {
                    return $crate::options::Options::set(&mut self.$after, key, value);
                })*
                let _ = value;
                Err($crate::options::unknown_option::<Self>(key))
            }
            #[allow(clippy::vec_init_then_push, reason = "one push an option, and sets may follow")]
            fn values(&self) -> $crate::alloc::vec::Vec<(&'static str, $crate::alloc::string::String)> {
                #[allow(unused_mut)]
                let mut values = $crate::alloc::vec::Vec::new();
                $(values.extend($crate::options::Options::values(&self.$before));)*
                $(values.push((stringify!($field), $crate::options::OptionValue::show(&self.$field)));)*
                $(values.extend($crate::options::Options::values(&self.$after));)*
                values
            }
        }
    };
}

/// Whether a set has an option of that name.
pub fn has<O: Options>(key: &str) -> bool {
    O::schema().iter().any(|option| option.key == key)
}

/// The refusal of an option that a scheme does not have.
pub fn unknown_option<O: Options>(key: &str) -> Refusal {
    let known: Vec<&str> = O::schema().iter().map(|option| option.key).collect();
    let message = if known.is_empty() {
        format!("no option {key}: this scheme has none")
    } else {
        format!("no option {key}: this scheme has {}", known.join(", "))
    };
    Refusal::new(key, message)
}

options! {
    /// Options of a scheme that has none.
    pub struct NoOptions {}
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
    options! {
        /// A set with one taken in.
        pub struct Larger {
            /// Log blocks.
            logs: u32 ["blocks"] = 2, samples [1, 3], scope Device, setting LogBlocks;
            ..sample: Sample;
        }
    }

    #[test]
    fn sets_take_in_others() {
        let mut o = Larger::default();
        o.set("colour", &Value::from_word("blue")).unwrap();
        o.set("logs", &Value::Int(7)).unwrap();
        assert_eq!((o.logs, o.sample.colour), (7, Colour::Blue));
        let schema = Larger::schema();
        let keys: Vec<&str> = schema.iter().map(|option| option.key).collect();
        assert_eq!(keys, ["logs", "count", "colour", "size"]);
        assert_eq!(schema[0].words(4), ["4", "12"]);
        assert_eq!(schema[2].words(4), ["red", "blue"]);
        assert_eq!(schema[0].unit_and_scope(), "blocks, device");
        assert_eq!(
            o.set("lugs", &Value::Int(1)).unwrap_err().message,
            "no option lugs: this scheme has logs, count, colour, size"
        );
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
