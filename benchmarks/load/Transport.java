package load;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** Bytes to and from a server, over TCP alone or over TLS. */
interface Transport {
    /** Do what is due when the connection stands, or when bytes have come before it was ready. */
    void advance() throws IOException;

    /** Whether requests may be sent. */
    boolean ready();

    /** Whether that took a full handshake of TLS. */
    boolean fullHandshake();

    /** Send a frame at once; it is far smaller than what a socket takes. */
    void send(byte[] frame) throws IOException;

    /** What has come, valid until the next call on any transport; empty when there is nothing more for now. */
    ByteBuffer receive() throws IOException;

    /** Say that no more requests come, before the connection is closed. */
    void end() throws IOException;

    /** TCP alone. */
    final class Plain implements Transport {
        private static final ByteBuffer OUT = ByteBuffer.allocateDirect(4096);
        private static final ByteBuffer IN = ByteBuffer.allocateDirect(256 * 1024);

        private final SocketChannel channel;

        Plain(SocketChannel channel) {
            this.channel = channel;
        }

        @Override
        public void advance() {
            // nothing comes before the first request
        }

        @Override
        public boolean ready() {
            return true;
        }

        @Override
        public boolean fullHandshake() {
            return false;
        }

        @Override
        public void send(byte[] frame) throws IOException {
            write(channel, OUT.clear().put(frame).flip());
        }

        @Override
        public ByteBuffer receive() throws IOException {
            read(channel, IN.clear());
            return IN.flip();
        }

        @Override
        public void end() {
            // the end of the connection says it
        }
    }

    static void write(SocketChannel channel, ByteBuffer out) throws IOException {
        int wanted = out.remaining();
        if (channel.write(out) != wanted) {
            throw new LoadFailed("the server does not read: a request of " + wanted + " bytes could not be sent");
        }
    }

    static void read(SocketChannel channel, ByteBuffer in) throws IOException {
        if (channel.read(in) < 0) {
            throw new LoadFailed("the server closed a connection");
        }
    }
}
