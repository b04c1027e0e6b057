//! Which methods a server has, and what runs them.

use std::fmt::Write;
use std::sync::Arc;

use super::call::Call;
use super::request::{Fault, Request};
use super::streams::Elements;
use crate::facts::METHOD_RESERVED;
use crate::rpc::method_id;
use crate::{Error, ErrorKind, Result};

pub(super) type Inline = dyn FnMut(&mut Request<'_>) -> Result<(), Fault> + Send;
pub(super) type Pooled = dyn Fn(&mut Request<'_>) -> Result<(), Fault> + Send + Sync;
pub(super) type Begins = dyn FnMut(&Request<'_>) -> Result<Box<dyn Elements>, Fault> + Send;
pub(super) type PoolBegins = dyn Fn(&Request<'_>) -> Result<Box<dyn Elements>, Fault> + Send + Sync;

/// What runs a method.
pub(super) enum Handler {
    Inline(Box<Inline>),
    Stream(Box<Begins>),
    Pool(Arc<Pooled>),
    PoolStream(Arc<PoolBegins>),
    Deferred(Box<dyn FnMut(Call) + Send>),
}

/// A method's number: a number below `0xFFFF_0000`, a name, whose number is [`method_id`], or a number and the name that goes with
/// it, which the server's description then has. A name has no control characters.
pub trait MethodKey {
    /// The number and the name.
    fn number_and_name(&self) -> (u32, Option<&str>);

    /// Whether it stands for [every method](AnyMethod) that has no handler of its own.
    #[doc(hidden)]
    fn is_any(&self) -> bool {
        false
    }
}

/// In place of a number: the handler of every method that has none of its own, for gateways and proxies. The server's description
/// does not have it.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-rpc-any-{}.sock", std::process::id());
/// # let mut server = ramway::rpc::Server::bind(&name)?;
/// server.method(ramway::rpc::AnyMethod, |request| Ok(request.method().to_le_bytes()))?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyMethod;

impl MethodKey for AnyMethod {
    fn number_and_name(&self) -> (u32, Option<&str>) {
        (0, None)
    }

    fn is_any(&self) -> bool {
        true
    }
}

impl MethodKey for u32 {
    fn number_and_name(&self) -> (u32, Option<&str>) {
        (*self, None)
    }
}

impl MethodKey for &str {
    fn number_and_name(&self) -> (u32, Option<&str>) {
        (method_id(self), Some(self))
    }
}

impl MethodKey for (u32, &str) {
    fn number_and_name(&self) -> (u32, Option<&str>) {
        (self.0, Some(self.1))
    }
}

pub(super) struct Method {
    number: u32,
    name: Option<String>,
    pub(super) handler: Handler,
}

#[derive(Default)]
pub(super) struct Methods {
    /// In the order of their numbers.
    by_number: Vec<Method>,
    /// Of every other number.
    any: Option<Handler>,
}

impl Methods {
    pub(super) fn add(&mut self, key: &impl MethodKey, handler: Handler) -> Result<()> {
        if key.is_any() {
            if self.any.is_some() {
                let text = "the server has a handler for any method already: expected one at most";
                return Err(Error::new(ErrorKind::AlreadyExists, text));
            }
            self.any = Some(handler);
            return Ok(());
        }
        let (number, name) = key.number_and_name();
        if number >= METHOD_RESERVED {
            let text =
                format!("method {number:#x} is Ramway's own: applications use numbers below {METHOD_RESERVED:#x}");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        if let Some(name) = name
            && name.chars().any(char::is_control)
        {
            let text = format!("the method name {name:?}: expected one without control characters");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        match self.by_number.binary_search_by_key(&number, |method| method.number) {
            Ok(at) => {
                let other = self.by_number[at].name.as_deref().map_or(String::new(), |name| format!(" ('{name}')"));
                let new = name.map_or(String::new(), |name| format!(" for '{name}'"));
                let text = format!(
                    "the server has a method {number}{other} already: expected another number{new}; give one of the two a number \
                     of its own"
                );
                Err(Error::new(ErrorKind::AlreadyExists, text))
            }
            Err(at) => {
                self.by_number.insert(at, Method { number, name: name.map(String::from), handler });
                Ok(())
            }
        }
    }

    #[inline]
    pub(super) fn find(&mut self, number: u32) -> Option<&mut Handler> {
        match self.by_number.binary_search_by_key(&number, |method| method.number) {
            Ok(at) => Some(&mut self.by_number[at].handler),
            Err(_) => self.any.as_mut(),
        }
    }

    /// A line for each: its number, and its name if it has one.
    pub(super) fn describe(&self) -> String {
        let mut lines = String::new();
        for Method { number, name, .. } in &self.by_number {
            let _ = match name {
                Some(name) => writeln!(lines, "{number} {name}"),
                None => writeln!(lines, "{number}"),
            };
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline() -> Handler {
        Handler::Inline(Box::new(|_| Ok(())))
    }

    #[test]
    fn methods_are_described_in_the_order_of_their_numbers() {
        let mut methods = Methods::default();
        methods.add(&"Store.Get", inline()).unwrap();
        methods.add(&7, inline()).unwrap();
        methods.add(&(3, "Three"), inline()).unwrap();
        assert_eq!(methods.describe(), format!("3 Three\n7\n{} Store.Get\n", method_id("Store.Get")));
        assert!(methods.find(7).is_some() && methods.find(8).is_none());
    }

    #[test]
    fn a_method_that_cannot_be_is_refused() {
        let mut methods = Methods::default();
        methods.add(&7, inline()).unwrap();
        for (key, kind) in [
            ((7, "again"), ErrorKind::AlreadyExists),
            ((METHOD_RESERVED, "ping"), ErrorKind::InvalidArgument),
            ((8, "a\nb"), ErrorKind::InvalidArgument),
        ] {
            assert_eq!(methods.add(&key, inline()).unwrap_err().kind(), kind);
        }
        methods.add(&AnyMethod, inline()).unwrap();
        assert_eq!(methods.add(&AnyMethod, inline()).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(methods.find(8).is_some());
        assert_eq!(methods.describe(), "7\n");
    }
}
