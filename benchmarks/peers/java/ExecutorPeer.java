import java.util.Locale;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Java's side of ./bench executor: ForkJoinPool.
 *
 * <pre>ExecutorPeer submit PRODUCERS THREADS CAPACITY MILLISECONDS</pre>
 *
 * One thread submits rounds of a million empty functions, each round to a new pool, until the time
 * has passed; the pool has no bound, so CAPACITY is not used. Runs until the JIT has compiled the
 * loops, then measures and prints functions per second.
 */
public final class ExecutorPeer {
    private static final int FUNCTIONS_PER_ROUND = 1_000_000;
    private static final int COUNTED = 10_000;
    private static final int WARM_UP_RUNS = 4;

    public static void main(String[] args) throws InterruptedException {
        if (args.length != 5 || !args[0].equals("submit")) {
            fail("usage: ExecutorPeer submit PRODUCERS THREADS CAPACITY MILLISECONDS");
        }
        int threads = Integer.parseInt(args[2]);
        long milliseconds = Long.parseLong(args[4]);
        expectEveryFunctionRuns(threads);
        for (int i = 0; i < WARM_UP_RUNS; ++i) {
            submit(threads, milliseconds / WARM_UP_RUNS);
        }
        System.out.printf(Locale.ROOT, "%.3f%n", submit(threads, milliseconds));
    }

    private static void expectEveryFunctionRuns(int threads) throws InterruptedException {
        AtomicLong ran = new AtomicLong();
        ForkJoinPool pool = new ForkJoinPool(threads);
        for (int i = 0; i < COUNTED; ++i) {
            pool.execute(ran::incrementAndGet);
        }
        finish(pool);
        if (ran.get() != COUNTED) {
            fail("functions that were run: got " + ran.get() + ", expected " + COUNTED);
        }
    }

    /** Returns functions per second. */
    private static double submit(int threads, long milliseconds) throws InterruptedException {
        long took = 0;
        long functions = 0;
        do {
            ForkJoinPool pool = new ForkJoinPool(threads);
            long start = System.nanoTime();
            for (int i = 0; i < FUNCTIONS_PER_ROUND; ++i) {
                pool.execute(() -> { });
            }
            finish(pool);
            took += System.nanoTime() - start;
            functions += FUNCTIONS_PER_ROUND;
        } while (took < milliseconds * 1_000_000);
        return functions / (took / 1e9);
    }

    /** Returns when all submitted functions have run. */
    private static void finish(ForkJoinPool pool) throws InterruptedException {
        pool.shutdown();
        if (!pool.awaitTermination(1, TimeUnit.MINUTES)) {
            fail("the pool did not end");
        }
    }

    /** Ends the process; the harness then fails the whole bench. */
    private static void fail(String why) {
        System.err.println("java peer: " + why);
        System.exit(1);
    }
}
