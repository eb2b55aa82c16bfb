import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Java's side of the benchmarks: the same workloads over java.util.concurrent's queues.
 *
 * <pre>QueuePeer WORKLOAD PRODUCERS CONSUMERS CAPACITY MILLISECONDS</pre>
 *
 * WORKLOAD is hand-over or pingpong. Runs it several times until the JIT has compiled the loops,
 * then for the given time, checks that every item arrived, and prints operations per second.
 * Items are boxed, as in any Java queue. A 0 stops a consumer.
 */
public final class QueuePeer {
    private static final int WARM_UP_RUNS = 4;

    /** Signals the threads of a run that its time has passed. */
    private static final class Clock {
        volatile boolean over;
    }

    private interface Body {
        /** Returns the number of its operations that count. */
        long run(Clock clock) throws InterruptedException;
    }

    private interface Workload {
        double perSecond(long milliseconds) throws InterruptedException;
    }

    public static void main(String[] args) throws InterruptedException {
        if (args.length != 5) {
            fail("usage: QueuePeer WORKLOAD PRODUCERS CONSUMERS CAPACITY MILLISECONDS");
        }
        int producers = Integer.parseInt(args[1]);
        int consumers = Integer.parseInt(args[2]);
        int capacity = Integer.parseInt(args[3]);
        long milliseconds = Long.parseLong(args[4]);
        Workload workload = switch (args[0]) {
            case "hand-over" -> time -> handOver(producers, consumers, capacity, time);
            case "pingpong" -> time -> pingPong(capacity, time);
            default -> throw new IllegalArgumentException("no workload is called " + args[0]);
        };
        for (int i = 0; i < WARM_UP_RUNS; ++i) {
            workload.perSecond(milliseconds / WARM_UP_RUNS);
        }
        System.out.printf(Locale.ROOT, "%.3f%n", workload.perSecond(milliseconds));
    }

    /** All producers and consumers share one queue. */
    private static double handOver(int producers, int consumers, int capacity, long milliseconds)
            throws InterruptedException {
        BlockingQueue<Long> queue = new ArrayBlockingQueue<>(capacity);
        AtomicInteger stillProducing = new AtomicInteger(producers);
        AtomicLong expected = new AtomicLong();
        AtomicLong arrived = new AtomicLong();
        List<Body> bodies = new ArrayList<>();
        for (int p = 0; p < producers; ++p) {
            bodies.add(clock -> {
                long item = 0;
                long sum = 0;
                while (!clock.over) {
                    queue.put(++item);
                    sum += item;
                }
                expected.addAndGet(sum);
                if (stillProducing.decrementAndGet() == 0) {
                    for (int c = 0; c < consumers; ++c) {
                        queue.put(0L);
                    }
                }
                return item;
            });
        }
        for (int c = 0; c < consumers; ++c) {
            bodies.add(clock -> {
                long sum = 0;
                for (long item = queue.take(); item != 0; item = queue.take()) {
                    sum += item;
                }
                arrived.addAndGet(sum);
                return 0;
            });
        }
        double perSecond = run(milliseconds, bodies);
        expectSum(arrived.get(), expected.get());
        return perSecond;
    }

    /** Counts round trips over two queues. */
    private static double pingPong(int capacity, long milliseconds) throws InterruptedException {
        BlockingQueue<Long> there = new ArrayBlockingQueue<>(capacity);
        BlockingQueue<Long> back = new ArrayBlockingQueue<>(capacity);
        Body ping = clock -> {
            long ball = 0;
            long arrived = 0;
            long expected = 0;
            while (!clock.over) {
                there.put(++ball);
                arrived += back.take();
                expected += ball + 1;
            }
            there.put(0L);
            expectSum(arrived, expected);
            return ball;
        };
        Body pong = clock -> {
            for (long ball = there.take(); ball != 0; ball = there.take()) {
                back.put(ball + 1);
            }
            return 0;
        };
        return run(milliseconds, List.of(ping, pong));
    }

    /**
     * Runs every body in a thread and returns their operations per second. All gather at a gate
     * first; the time is measured from its opening until the last thread has ended.
     */
    private static double run(long milliseconds, List<Body> bodies) throws InterruptedException {
        Clock clock = new Clock();
        AtomicLong operations = new AtomicLong();
        CountDownLatch gathered = new CountDownLatch(bodies.size());
        CountDownLatch gate = new CountDownLatch(1);
        List<Thread> threads = new ArrayList<>();
        for (Body body : bodies) {
            Thread thread = new Thread(() -> {
                try {
                    gathered.countDown();
                    gate.await();
                    operations.addAndGet(body.run(clock));
                } catch (InterruptedException e) {
                    fail("interrupted");
                }
            });
            thread.start();
            threads.add(thread);
        }
        gathered.await();
        long opened = System.nanoTime();
        gate.countDown();
        Thread.sleep(milliseconds);
        clock.over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        return operations.get() / ((System.nanoTime() - opened) / 1e9);
    }

    private static void expectSum(long arrived, long expected) {
        if (arrived != expected) {
            fail("sum of the items that arrived: got " + arrived + ", expected " + expected);
        }
    }

    /** Ends the process; the harness then fails the whole bench. */
    private static void fail(String why) {
        System.err.println("java peer: " + why);
        System.exit(1);
    }
}
