package load;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * One answer, read from its begin. Of a long one only the first {@link #HEAD} bytes are kept: nobody looks at the rest.
 *
 * <p>The object is used again for the next answer of its connection.
 */
final class Answer {
    static final int HEAD = 1024;

    private final byte[] head = new byte[HEAD];
    private int prefix;
    private int length;
    private int received;
    private int position;

    /** Take bytes as they come; true as soon as the answer is whole. A server never sends more than was asked for. */
    boolean accept(ByteBuffer in) {
        while (prefix < 4 && in.hasRemaining()) {
            length = length << 8 | in.get() & 0xff;
            prefix++;
        }
        int kept = Math.min(Math.min(in.remaining(), HEAD - Math.min(received, HEAD)), length - received);
        in.get(head, Math.min(received, HEAD), kept);
        int skipped = Math.min(in.remaining(), length - received - kept);
        in.position(in.position() + skipped);
        received += kept + skipped;
        boolean whole = prefix == 4 && received == length;
        if (whole && in.hasRemaining()) {
            throw new LoadFailed("the server sent more than one answer to one request");
        }
        return whole;
    }

    /** Get ready for the next one. */
    void clear() {
        prefix = length = received = position = 0;
    }

    /** Read the header and the error code; anything but success fails the run. */
    void expect(short apiKey) {
        int correlationId = int32();
        if (correlationId != apiKey) {
            throw new LoadFailed("an answer to request " + correlationId + " where " + apiKey + " was asked");
        }
        if (apiKey != Request.API_VERSIONS && apiKey != Request.SASL_HANDSHAKE) {
            uvarint(); // tags of the header
        }
        skipToError(apiKey);
        int error = int16();
        if (error != 0) {
            String detail = apiKey == Request.SASL_AUTHENTICATE ? ": " + new String(compactBytes()) : "";
            throw new LoadFailed("error " + error + " for API " + apiKey + detail);
        }
    }

    /** Of the APIs about topics the answer begins with other things; the first topic's first error counts. */
    private void skipToError(short apiKey) {
        if (apiKey == Request.PRODUCE) {
            uvarint(); // topics
            compactBytes(); // its name
            uvarint(); // partitions
            position += Integer.BYTES; // its index
        } else if (apiKey == Request.METADATA) {
            position += Integer.BYTES; // throttled for
            for (int brokers = uvarint() - 1; brokers > 0; brokers--) {
                position += Integer.BYTES; // id
                compactBytes(); // host
                position += Integer.BYTES; // port
                compactBytes(); // rack
                uvarint(); // tags
            }
            compactBytes(); // cluster id
            position += Integer.BYTES; // controller
            uvarint(); // topics
        }
    }

    /** What a SaslAuthenticate answer carries for the mechanism. */
    byte[] authBytes() {
        compactBytes(); // the message, empty or null
        return compactBytes();
    }

    /** The secret of a token that was created. */
    byte[] createdHmac() {
        for (int skipped = 0; skipped < 4; skipped++) {
            compactBytes(); // type and name of the owner and of the requester
        }
        position += 3 * Long.BYTES; // the times
        compactBytes(); // the id
        return compactBytes();
    }

    /** How many tokens are described. */
    int describedCount() {
        return uvarint() - 1;
    }

    private int int16() {
        return head[position++] << 8 | head[position++] & 0xff;
    }

    private int int32() {
        return int16() << 16 | int16() & 0xffff;
    }

    private int uvarint() {
        int value = 0;
        for (int shift = 0; ; shift += 7) {
            byte part = head[position++];
            value |= (part & 0x7f) << shift;
            if (part >= 0) {
                return value;
            }
        }
    }

    private byte[] compactBytes() {
        int count = Math.max(uvarint() - 1, 0);
        position += count;
        return Arrays.copyOfRange(head, position - count, position);
    }
}
