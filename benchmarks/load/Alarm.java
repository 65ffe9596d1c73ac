package load;

import java.nio.channels.Selector;
import java.util.concurrent.locks.LockSupport;

/**
 * Wakes a selector at an instant. By itself it can only wait for whole milliseconds, and an operation that is begun so
 * much late would seem so much slower.
 */
final class Alarm implements AutoCloseable {
    private static final long NEVER = Long.MAX_VALUE;

    private final Selector selector;
    private final Thread thread;
    private volatile long dueNs = NEVER;
    private volatile boolean closed;

    Alarm(Selector selector) {
        this.selector = selector;
        thread = new Thread(this::watch, "alarm");
        thread.setDaemon(true);
        thread.start();
    }

    /** Wake it then, and not at an instant that was named before. */
    void at(long whenNs) {
        if (whenNs != dueNs) {
            dueNs = whenNs;
            LockSupport.unpark(thread);
        }
    }

    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }

    private void watch() {
        while (!closed) {
            long whenNs = dueNs;
            if (whenNs == NEVER) {
                LockSupport.park(this);
                continue;
            }
            long leftNs = whenNs - System.nanoTime();
            if (leftNs > 0) {
                LockSupport.parkNanos(this, leftNs);
            } else {
                dueNs = NEVER;
                selector.wakeup();
            }
        }
    }
}
