//! What SLURM's accounting says of a job: `sacct --parsable2`.

use serde::Serialize;

/// Fields that are asked for, in this order (sacct(1), "Job Accounting Fields"); the name is last: it may contain
/// `|` and line ends.
pub const FIELDS: &str = "JobID,CheckState,ExitCode,Elapsed,ReqMem,MaxRSS,MaxVMSize,AllocTRES,JobName";

/// One job or one of its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// `4711`, `4711.batch`, `4711.0`, `4711_3.extern`.
    pub id: String,
    /// Name of the job or step.
    pub name: String,
    /// `COMPLETED`, `OUT_OF_MEMORY`, `CANCELLED`: without "by UID".
    pub state: String,
    /// `0:125`: exit code and signal.
    pub exit_code: String,
    /// `1-02:03:04`.
    pub elapsed: String,
    /// Memory asked for, in bytes; per node or per processor as `requested_per` says.
    pub requested: Option<u64>,
    /// `node`, `cpu`, or empty where SLURM does not say.
    pub requested_per: String,
    /// Largest resident set of one task, in bytes; sampled, so that short peaks are missed.
    pub max_rss: Option<u64>,
    /// Largest virtual size of one task, in bytes.
    pub max_vm: Option<u64>,
    /// Memory granted, in bytes.
    pub granted: Option<u64>,
}

impl Step {
    /// Was it ended for want of memory?
    ///
    /// `JobAcctGatherParams=OverMemoryKill` leaves `CANCELLED` and `0:9`, as others who kill do: then one task had more
    /// than was granted.
    pub fn out_of_memory(&self) -> bool {
        let over = self.max_rss.zip(self.granted).is_some_and(|(had, granted)| had > granted);
        self.state == "OUT_OF_MEMORY" || self.exit_code == "0:125" || (self.exit_code == "0:9" && over)
    }
}

/// Reads the output of `sacct --parsable2 --noheader --format FIELDS`; lines that are not of that form are left out.
pub fn parse(output: &str) -> Vec<Step> {
    output.lines().filter_map(step).collect()
}

fn step(line: &str) -> Option<Step> {
    let fields: Vec<&str> = line.splitn(9, '|').map(str::trim).collect();
    let [id, state, exit_code, elapsed, requested, max_rss, max_vm, tres, name] = fields.as_slice() else {
        return None;
    };
    if !id.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // Before 21.08 a letter behind the size says what it is per.
    let (size, per) = match requested.strip_suffix(['n', 'c']) {
        Some(size) => (size, if requested.ends_with('n') { "node" } else { "cpu" }),
        None => (*requested, ""),
    };
    let granted = tres.split(',').find_map(|part| part.strip_prefix("mem="));
    Some(Step {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        state: state.split_whitespace().next().unwrap_or_default().to_owned(),
        exit_code: (*exit_code).to_owned(),
        elapsed: (*elapsed).to_owned(),
        requested: bytes(size),
        requested_per: per.to_owned(),
        max_rss: bytes(max_rss),
        max_vm: bytes(max_vm),
        granted: granted.and_then(bytes),
    })
}

/// A size as SLURM writes it: `81234K`, `79.33G`, `4000M`, `0`; without a letter it is in bytes.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "" => 1_u64,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        "P" => 1 << 50,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * unit as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of SLURM 22.05 and 20.11.
    const OUTPUT: &str = "\
4711|OUT_OF_MEMORY|0:125|02:11:40|80G|||billing=8,cpu=8,gres/gpu=1,mem=80G,node=1|train
4711.batch|OUT_OF_MEMORY|0:125|02:11:40||83842308K|95123456K|cpu=8,gres/gpu=1,mem=80G,node=1|batch
4711.extern|COMPLETED|0:0|02:11:40||0|0|billing=8,cpu=8,mem=80G,node=1|extern
4712_3|CANCELLED by 1001|0:15|1-00:00:12|4000Mc|1.50G|||sweep
sacct: error: Problem talking to the database
";

    #[test]
    fn steps_states_and_units() {
        let steps = parse(OUTPUT);
        let found: Vec<_> =
            steps.iter().map(|step| (step.id.as_str(), step.state.as_str(), step.max_rss)).collect();
        let expected = [
            ("4711", "OUT_OF_MEMORY", None),
            ("4711.batch", "OUT_OF_MEMORY", Some(83_842_308 << 10)),
            ("4711.extern", "COMPLETED", Some(0)),
            ("4712_3", "CANCELLED", Some(3 << 29)),
        ];
        assert_eq!(found, expected);
        assert_eq!((steps[0].requested, steps[0].granted), (Some(80 << 30), Some(80 << 30)));
        assert_eq!((steps[3].requested, steps[3].requested_per.as_str()), (Some(4000 << 20), "cpu"));
        assert_eq!(steps.iter().map(Step::out_of_memory).collect::<Vec<_>>(), [true, true, false, false]);
    }

    /// Recorded from SLURM 22.05.8: names with `|` and a line end; killed by `OverMemoryKill`.
    #[test]
    fn odd_names_and_killed_by_the_sampler() {
        let steps = parse(
            "8|FAILED|1:0|00:00:04|70M|||billing=1,cpu=1,mem=70M,node=1|odd|name
15|COMPLETED|0:0|00:00:02|70M|||billing=1,cpu=1,mem=70M,node=1|two
lines
18|FAILED|0:9|00:00:02|100M|||billing=1,cpu=1,mem=100M,node=1|oombatch
18.batch|CANCELLED by 0|0:9|00:00:02||264008K|269956K|cpu=1,mem=100M,node=1|batch
12.batch|CANCELLED|0:9|00:00:02||10696K|219452K|cpu=1,mem=1025M,node=1|batch
",
        );
        let found: Vec<_> =
            steps.iter().map(|step| (step.id.as_str(), step.name.as_str(), step.out_of_memory())).collect();
        let expected = [
            ("8", "odd|name", false),
            ("15", "two", false),
            ("18", "oombatch", false),
            ("18.batch", "batch", true),
            ("12.batch", "batch", false),
        ];
        assert_eq!(found, expected);
        assert_eq!((bytes("1234567"), bytes("95823688.50K")), (Some(1_234_567), Some(98_123_457_024)));
    }

    #[test]
    fn sizes_that_are_none() {
        for text in ["", "Unknown", "12X", "."] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
