//! What core's digests do not name, by every instruction set of this machine, a thread and three, and small tiles.

use tercet_host::conformance;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

#[test]
fn every_operation_gives_core_s_results() {
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            for backend in Backend::all() {
                for engine in [Threads::default(), Threads::with_tile(100)] {
                    let mut operations = 0;
                    conformance::run(&engine.with_backend(backend), &mut |operation, agrees| {
                        assert!(agrees, "{operation}, {backend}, {threads} threads");
                        operations += 1;
                    });
                    assert_eq!(operations, 8);
                }
            }
        });
    }
}
