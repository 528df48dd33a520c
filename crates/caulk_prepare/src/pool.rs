//! Workers that share a list of videos. One that dies of a video, or takes too long, is replaced for the next.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;
use std::vec;

use camino::Utf8PathBuf;
use caulk_clip::job::{Answer, Prepare, Request};

use crate::worker::{Worker, WorkerError};

/// Workers, and what each may take.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The worker's executable.
    pub worker: Utf8PathBuf,
    /// Workers.
    pub jobs: usize,
    /// Bytes that each worker may take.
    pub memory: u64,
    /// How long one video may take.
    pub timeout: Duration,
}

/// What was asked for, by whatever tells the caller which it is, and the answer, unless the worker died of it.
type Made<T> = (T, Result<Answer, WorkerError>);

impl Pool {
    /// Gives videos to workers, and what comes of them to `take`, one at a time.
    ///
    /// # Errors
    /// If no worker can be started, or `take` has had enough.
    pub(crate) fn work<T: Send, E: From<WorkerError>>(
        &self,
        pending: Vec<(T, Prepare)>,
        mut take: impl FnMut(T, Result<Answer, WorkerError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let jobs = self.jobs.clamp(1, pending.len().max(1));
        let queue = Mutex::new(pending.into_iter());
        let (sender, results) = mpsc::sync_channel(jobs);
        thread::scope(|scope| {
            for _ in 0..jobs {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || self.serve(queue, &sender));
            }
            drop(sender);
            let taken = results.iter().try_for_each(|made| made.map(|(of, answer)| take(of, answer))?);
            // Whoever waits to hand over another result finds nobody, and stops.
            drop(results);
            taken
        })
    }

    fn serve<T>(
        &self,
        queue: &Mutex<vec::IntoIter<(T, Prepare)>>,
        results: &mpsc::SyncSender<Result<Made<T>, WorkerError>>,
    ) {
        let mut worker = None;
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.next());
            let Some((of, job)) = next else { return };
            let made = self.one(&mut worker, job).map(|answer| (of, answer));
            let stop = made.is_err();
            if results.send(made).is_err() || stop {
                return;
            }
        }
    }

    /// One video; the outer error is that there is no worker.
    fn one(
        &self,
        worker: &mut Option<Worker>,
        job: Prepare,
    ) -> Result<Result<Answer, WorkerError>, WorkerError> {
        let mut current = match worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.worker, self.memory)?,
        };
        let answer = current.ask(&Request::Prepare(job), Some(self.timeout));
        Ok(answer.map(|(answer, _)| {
            *worker = Some(current);
            answer
        }))
    }
}
