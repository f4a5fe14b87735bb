//! temporary
use floatgate_core::ftl::*;
use floatgate_core::suite::*;
use floatgate_core::*;
struct V<'a>(&'a Case, &'a str);
impl Visitor for V<'_> {
    type Output = (FlashCounters, floatgate_core::report::SchemeCounters, u64);
    fn visit<S: Ftl>(self) -> Self::Output {
        let mut b = Bench::<S>::new(self.0).unwrap();
        for line in self.1.lines() {
            let l = line.split('#').next().unwrap().trim();
            if l.is_empty() {
                continue;
            }
            let w: Vec<&str> = l.split_whitespace().take(3).collect();
            let arrival = l.split_whitespace().nth(3).map(|t| t.parse().unwrap());
            b.arrive(arrival.unwrap_or(0)).unwrap();
            b.play(&w.join(" "));
        }
        b.audit().unwrap();
        (b.counters(), b.scheme(), b.flash.unwritten_reads)
    }
}
use floatgate_core::report::FlashCounters;
#[test]
fn vectors() {
    let mut bad = 0;
    for s in all() {
        for n in ["01", "02"] {
            let p = format!(
                "/work/shared/specs/vectors/{}/{n}",
                s.key.replace("last++", "last-plus-plus")
            );
            let j: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(format!("{p}.json")).unwrap())
                    .unwrap();
            let t = std::fs::read_to_string(format!("{p}.txt")).unwrap();
            let c = j["config"].as_object().unwrap();
            let g = |k: &str| c[k].as_u64().unwrap() as u32;
            let mut case = Case::small(g("dies"), g("blocks"), g("pages"), 1);
            case.logical_pages = g("logical_pages");
            case.start = Start::from_name(c["start"].as_str().unwrap()).unwrap();
            case.order = ProgramOrder::from_name(c["program_order"].as_str().unwrap()).unwrap();
            for (k, v) in c {
                if ![
                    "dies",
                    "blocks",
                    "pages",
                    "logical_pages",
                    "start",
                    "program_order",
                ]
                .contains(&k.as_str())
                {
                    case = case.with(k, v.as_str().map(String::from).unwrap_or(v.to_string()));
                }
            }
            let (f, m, u) = visit(s.key, V(&case, &t)).unwrap();
            let w = &j["counters"];
            let mut cmp = |k: &str, got: u64| {
                let want = k.split('.').fold(w, |a, b| &a[b]).as_u64();
                if want.is_some() && want != Some(got) {
                    bad += 1;
                    println!("{} {n} {k}: got {got} want {want:?}", s.key);
                }
            };
            cmp("host.unwritten_reads", u);
            for (k, b) in [
                ("reads", f.reads),
                ("programs", f.programs),
                ("oob_reads", f.oob_reads),
                ("erases", f.erases),
            ] {
                cmp(&format!("flash.{k}.host"), b.host);
                cmp(&format!("flash.{k}.gc"), b.gc);
                cmp(&format!("flash.{k}.map"), b.map);
            }
            cmp("merges.switch", m.merges.switch);
            cmp("merges.partial", m.merges.partial);
            cmp("merges.full", m.merges.full);
            cmp("merges.dead", m.merges.dead);
            cmp(
                "merges.full_merge_associated",
                m.merges.full_merge_associated,
            );
            for e in m.extra {
                cmp(&format!("extra.{}", e.name), e.value);
            }
            for e in m.own_merges {
                cmp(&format!("merges.{}", e.name), e.value);
            }
        }
    }
    assert_eq!(bad, 0);
}
