//! What is accepted, and what is said of what is not.

use std::path::Path;
use std::time::Duration;

use ramway::layout;

use super::names::{Why, exports, import};
use super::*;

const LINK: &str = "[link]\nlisten = [\"tcp/127.0.0.1:7447\"]\n";

fn read(rules: &str) -> Result<Config, Problems> {
    Config::parse(&format!("{LINK}{rules}"), Path::new("bridge.toml"))
}

/// What is said of these rules, which begin on line 3.
fn said(rules: &str) -> String {
    read(rules).expect_err("it is wrong").to_string()
}

const RING: &str = "[[rule]]\nnames = [\"a\"]\nkind = \"ring\"\ndirection = \"export\"\non_disconnect = \"block\"\n";

#[test]
fn all_of_it() {
    let config = read(
        r#"
[metrics]
listen = "127.0.0.1:9464"

[[rule]]
names = ["camera.*", "lidar"]
except = ["camera.raw"]
kind = "topic"
direction = "export"
delivery = "reliable"
eject_after = "5s"
label = "hall"
prefix = "front/left"
window = "4M"
chunk = 4096

[[rule]]
names = ["pose"]
kind = "newest"
direction = "import"
every = "10ms"
capacity = "64K"

[[rule]]
names = ["log"]
kind = "topic"
direction = "export"
delivery = "lossy"
rate = 0.5

[[rule]]
names = ["store"]
kind = "rpc"
direction = "import"
on_disconnect = "block"
max_connections = 7
"#,
    )
    .unwrap();
    assert_eq!(config.metrics, Some("127.0.0.1:9464".parse().unwrap()));
    assert_eq!(config.link.prefix, "ramway");
    let lines: Vec<_> = config.rules.iter().map(|rule| rule.line.0).collect();
    assert_eq!(lines, [Some(7), Some(19), Some(26), Some(33)]);
    let rule = &config.rules[0];
    assert_eq!((rule.window, rule.chunk, rule.prefix.as_str()), (4 << 20, 4096, "front/left"));
    let on_disconnect = OnDisconnect::EjectAfter(Duration::from_secs(5));
    let delivery = Delivery::Reliable { on_disconnect, label: "hall".into() };
    assert_eq!(rule.kind, Kind::Topic { delivery, capacity: None });
    assert!(rule.covers("camera.left") && !rule.covers("camera.raw") && rule.covers("lidar"));
    assert_eq!(config.rules[1].kind, Kind::Newest { every: Duration::from_millis(10), capacity: Some(64 << 10) });
    let delivery = Delivery::Lossy { every: Some(Duration::from_secs(2)) };
    assert_eq!(config.rules[2].kind, Kind::Topic { delivery, capacity: None });
    let on_disconnect = OnDisconnect::Block;
    assert_eq!(config.rules[3].kind, Kind::Bus { on_disconnect, capacity: None, rpc: true, max_connections: 7 });
    assert_eq!(config.rules[3].kind.word(), "rpc");
}

#[test]
fn a_rule_that_only_moved_is_the_same() {
    let (a, b) = (read(RING).unwrap(), read(&format!("\n\n{RING}")).unwrap());
    assert_ne!(a.rules[0].line.0, b.rules[0].line.0);
    assert_eq!(a.rules, b.rules);
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let text = said("[[rule]]\nnmes = [\"a\"]\n");
    assert!(text.starts_with("bridge.toml:4: unknown field `nmes`, expected one of `names`"), "{text}");
    let text = Config::parse("[link]\nlisten = []\n\nfoo = 1\n", Path::new("bridge.toml")).unwrap_err().to_string();
    assert!(text.starts_with("bridge.toml:4: unknown field `foo`"), "{text}");
    let text = said("[[rule]]\nnames = 5\n");
    assert!(text.starts_with("bridge.toml:4: invalid type"), "{text}");
    let text = said("[[rule]\n");
    assert!(text.starts_with("bridge.toml:3: "), "{text}");
}

/// Each error once, with its line and what to do.
#[test]
fn what_is_wrong_is_said_all_at_once() {
    let rules = RING.replace("on_disconnect = \"block\"\n", "")
        + "[[rule]]\nnames = [\"b/c\"]\nkind = \"rong\"\ndirection = \"export\"\n"
        + "[[rule]]\nnames = []\nkind = \"ring\"\ndirection = \"out\"\n";
    let problems = read(&rules).unwrap_err();
    let places: Vec<_> = problems.list.iter().map(|problem| problem.place).collect();
    assert_eq!(places, [3, 8, 9, 11, 14].map(Place::Line), "{problems}");
    let text = problems.to_string();
    assert!(text.contains("bridge.toml:3: the rule of a ring does not say what a broken link does"), "{text}");
    assert!(text.contains("there is no default, because it can stop the machine"), "{text}");
    assert!(text.contains("`on_disconnect = \"block\"`") && text.contains("`eject_after = \"5s\"`"), "{text}");
    assert!(text.contains("bridge.toml:9: the kind \"rong\" is unknown"), "{text}");
}

#[test]
fn what_has_no_meaning_is_refused() {
    for (line, expected) in [
        ("delivery = \"lossy\"", "a ring is always reliable; remove `delivery`"),
        ("rate = 5", "`rate` is only for lossy topics"),
        ("every = \"1s\"", "`every` is only for kind \"newest\""),
        ("label = \"x\"", "`label` is only for reliable topics"),
        ("capacity = \"1M\"", "`capacity` is of what an import makes"),
        ("max_connections = 5", "`max_connections` is only for kinds \"bus\" and \"rpc\""),
        ("eject_after = \"5s\"", "remove one of the two"),
        ("window = \"1K\"", "`window` is 1024 bytes; expected 129024 to"),
        ("chunk = \"1 fish\"", "`chunk` `1 fish` is not a size"),
        ("chunk = 100", "`chunk` is 100 bytes; expected 1024 to"),
        ("prefix = \"a//b\"", "`prefix` is \"a//b\"; expected words"),
        ("prefix = \"a/*\"", "`prefix` is \"a/*\"; expected words"),
    ] {
        let text = said(&format!("{RING}{line}\n"));
        assert!(text.starts_with("bridge.toml:8: "), "{line}: {text}");
        assert!(text.contains(expected), "{line}: {text}");
    }
    let newest = "[[rule]]\nnames = [\"a\"]\nkind = \"newest\"\ndirection = \"export\"\non_disconnect = \"block\"\n";
    assert!(said(newest).contains("`on_disconnect` is only for reliable rules"));
    let topic = "[[rule]]\nnames = [\"a\"]\nkind = \"topic\"\ndirection = \"export\"\n";
    assert!(said(topic).contains("a topic's rule says how it crosses"));
    assert!(
        said(&format!("{topic}delivery = \"lossy\"\nrate = 0\n")).contains("`rate` is 0; expected messages per second")
    );
    assert!(
        said(&RING.replace("on_disconnect = \"block\"", "eject_after = 0"))
            .contains("`eject_after` is 0; expected 3s at least")
    );
    let undecided = RING.replace("ring", "rpc").replace("on_disconnect = \"block\"\n", "");
    assert!(
        said(&undecided).contains("the rule of kind \"rpc\" does not say what a broken link does to its connections")
    );
    let bus = RING.replace("ring", "bus") + "max_connections = 0\n";
    assert!(said(&bus).contains("`max_connections` is 0; expected how many connections"));
    assert!(said("").contains("there is no [[rule]]"));
}

#[test]
fn links_are_checked() {
    let said =
        |link: &str| Config::parse(&format!("{link}\n{RING}"), Path::new("bridge.toml")).unwrap_err().to_string();
    assert!(said("").contains("there is no [link]"));
    assert!(said("[link]").starts_with("bridge.toml:1: no other bridge can be reached"));
    assert!(said("[link]\nmode = \"router\"").starts_with("bridge.toml:2: the mode \"router\" is unknown"));
    assert!(said("[link]\nmode = \"client\"").contains("a client needs an endpoint"));
    assert!(
        said("[link]\nmode = \"client\"\nlisten = [\"tcp/a:1\"]\nconnect = [\"tcp/a:1\"]")
            .contains("a client does not listen")
    );
    assert!(
        said("[link]\nconnect = [\"far:7447\"]")
            .starts_with("bridge.toml:2: `connect`: \"far:7447\" is not an endpoint")
    );
    assert!(said("[link]\nconnect = [\"tls/far:7447\"]").contains("there are no certificates"));
    let lacking = said("[link]\nconnect = [\"tls/far:7447\"]\n[link.tls]\nca = \"/nowhere/ca.pem\"\nkey = \"/\"");
    assert!(lacking.contains("bridge.toml:4: `ca`: /nowhere/ca.pem cannot be read: "), "{lacking}");
    assert!(lacking.contains("bridge.toml:5: `key` is /, which is not a file"), "{lacking}");
    assert!(lacking.contains("the certificates lack `certificate`"), "{lacking}");
    assert!(said("[link]\nzenoh = \"/dev/null\"\nmode = \"peer\"").contains("remove one of the two"));
    let open = Config::parse("[link]\ndiscovery = true\n[[rule]]\n", Path::new("bridge.toml")).unwrap_err().to_string();
    assert!(!open.contains("no other bridge can be reached"), "{open}");
}

fn rule(name: &str, kind: &str, direction: &str, more: &str) -> String {
    format!("[[rule]]\nnames = [\"{name}\"]\nkind = \"{kind}\"\ndirection = \"{direction}\"\n{more}\n")
}

const RELIABLE: &str = "delivery = \"reliable\"\non_disconnect = \"block\"";
const BLOCK: &str = "on_disconnect = \"block\"";

#[test]
fn loops_and_second_paths_are_refused() {
    let both = |a: String, b: String| read(&(a + &b)).map(|_| ()).map_err(|problems| problems.to_string());
    let text = both(rule("a*", "topic", "export", RELIABLE), rule("ab", "topic", "import", RELIABLE)).unwrap_err();
    assert!(text.starts_with("bridge.toml:9: \"ab\" is also named by the rule of line 3 (\"a*\")"), "{text}");
    assert!(text.contains("would come back"), "{text}");
    // Under another key it does not.
    let other = format!("{RELIABLE}\nprefix = \"elsewhere\"");
    both(rule("a*", "topic", "export", RELIABLE), rule("ab", "topic", "import", &other)).unwrap();
    both(rule("a*", "topic", "export", RELIABLE), rule("b*", "topic", "import", RELIABLE)).unwrap();
    // A ring has one receiver, whatever the key is.
    let text =
        both(rule("a", "ring", "export", BLOCK), rule("a", "ring", "export", &format!("{BLOCK}\nprefix = \"b\"")))
            .unwrap_err();
    assert!(text.contains("a ring has one receiver"), "{text}");
    let text = both(rule("a", "topic", "export", RELIABLE), rule("a", "topic", "export", &other)).unwrap_err();
    assert!(text.contains("the same label"), "{text}");
    both(rule("a", "topic", "export", RELIABLE), rule("a", "topic", "export", &format!("{other}\nlabel = \"second\"")))
        .unwrap();
    // What is a ring is no topic.
    both(rule("*", "ring", "export", BLOCK), rule("*", "topic", "export", RELIABLE)).unwrap();
    let text = both(rule("a", "ring", "import", BLOCK), rule("*", "ring", "import", BLOCK)).unwrap_err();
    assert!(text.contains("both would make it on this machine"), "{text}");
}

#[test]
fn why_a_name_is_not_bridged() {
    let rules = read(
        &(rule("a*", "topic", "export", &format!("{RELIABLE}\nexcept = [\"ax\"]"))
            + &rule("in.*", "ring", "import", BLOCK)
            + &rule("*z", "topic", "import", &format!("{RELIABLE}\nexcept = [\"azz\"]"))),
    )
    .unwrap()
    .rules;
    let topic = |name: &str| exports(&rules, name, layout::Kind::Topic);
    assert_eq!(topic("ab").unwrap(), [&rules[0]]);
    assert_eq!(topic("b").unwrap_err(), Why::NoRule);
    assert_eq!(topic("ax").unwrap_err().to_string(), "denied by `except` (\"ax\") of the rule of line 3");
    assert_eq!(topic("in.b").unwrap_err().to_string(), "the rule of line 10 only imports it");
    let why = exports(&rules, "ab", layout::Kind::Ring).unwrap_err().to_string();
    assert_eq!(why, "it is a ring, and the rule of line 3 is for kind \"topic\"");
    // `except` could have kept these apart, so only the name itself shows it.
    let why = topic("az").unwrap_err().to_string();
    assert!(why.starts_with("both the rule of line 3 and the rule of line 15 name \"az\""), "{why}");
    assert!(topic("azz").is_ok());
    assert!(matches!(import(&rules, "az", "topic", ""), Err(Why::Conflict(_))));
    assert_eq!(import(&rules, "in.b", "ring", "").unwrap(), &rules[1]);
    assert!(import(&rules, "in.b", "ring", "other").is_err());
    assert_eq!(import(&rules, "bz", "topic", "").unwrap(), &rules[2]);
}
