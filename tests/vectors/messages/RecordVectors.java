import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Writes what Kafka's own classes make of samples.json, one JSON object a line: every sample in every version of its
 * API that this version of kafka-clients has, as a whole frame. README.md says how it is run.
 */
public class RecordVectors {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Pattern ABSENT_FIELD = Pattern.compile("non-default (\\w+) at version");
    private static final Pattern ABSENT_ENTITY = Pattern.compile("Can't read version \\d+ of (\\w+)");
    private static final Map<String, String> FIELD_OF_ENTITY = Map.of(
            "Coordinator", "coordinators",
            "SupportedFeatureKey", "supportedFeatures",
            "FinalizedFeatureKey", "finalizedFeatures");
    private static final int CORRELATION_ID = -559038737;
    private static final String CLIENT_ID = "Zoë's client";

    public static void main(String[] args) throws Exception {
        JsonNode samples = MAPPER.readTree(new File(args[0]));
        for (Iterator<Map.Entry<String, JsonNode>> apis = samples.fields(); apis.hasNext(); ) {
            Map.Entry<String, JsonNode> api = apis.next();
            ApiKeys key = ApiKeys.valueOf(api.getKey());
            for (short version = key.messageType.lowestSupportedVersion();
                    version <= key.messageType.highestSupportedVersion(true); version++) {
                record(key, version, "request", api.getValue().get("request"));
                record(key, version, "response", api.getValue().get("response"));
            }
        }
    }

    private static void record(ApiKeys key, short version, String kind, JsonNode samples) throws Exception {
        boolean request = kind.equals("request");
        int written = 0;
        for (JsonNode sample : samples) {
            ApiMessage body = fit(key, kind, version, sample.deepCopy());
            if (body == null) {
                continue;
            }
            print(key, version, kind, body, header(key, version, request), false);
            written++;
            short headerVersion = request ? key.requestHeaderVersion(version) : key.responseHeaderVersion(version);
            if (written == 1 && headerVersion >= (request ? 2 : 1)) {
                Message header = header(key, version, request);
                tag(header);
                tag(body);
                print(key, version, kind, body, header, true);
            }
        }
        if (written == 0) {
            throw new IllegalStateException("no sample fits " + key + " " + kind + " " + version);
        }
    }

    /** Leaves out the fields that this version has not; null if it cannot say the rest either, as null for a field. */
    private static ApiMessage fit(ApiKeys key, String kind, short version, JsonNode sample) throws Exception {
        while (true) {
            try {
                ApiMessage body = read(key, kind, version, sample);
                bytes(body, version);
                return body;
            } catch (UnsupportedVersionException e) {
                remove(sample, absentField(e));
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof UnsupportedVersionException)) {
                    return null;
                }
                remove(sample, absentField((UnsupportedVersionException) e.getCause()));
            } catch (NullPointerException e) {
                return null;
            }
        }
    }

    private static String absentField(UnsupportedVersionException e) {
        Matcher field = ABSENT_FIELD.matcher(e.getMessage());
        Matcher entity = ABSENT_ENTITY.matcher(e.getMessage());
        if (field.find()) {
            return field.group(1);
        }
        if (entity.find()) {
            return FIELD_OF_ENTITY.get(entity.group(1));
        }
        throw e;
    }

    private static void remove(JsonNode node, String field) {
        if (node instanceof ObjectNode) {
            ((ObjectNode) node).remove(field);
        }
        node.forEach(child -> remove(child, field));
    }

    /** Adds what a newer peer may send: tagged fields that nobody here knows. */
    private static void tag(Message message) {
        message.unknownTaggedFields().add(new RawTaggedField(100, "unknown".getBytes(StandardCharsets.UTF_8)));
        message.unknownTaggedFields().add(new RawTaggedField(70000, new byte[0]));
    }

    private static Message header(ApiKeys key, short version, boolean request) {
        if (!request) {
            return new ResponseHeaderData().setCorrelationId(CORRELATION_ID);
        }
        return new RequestHeaderData().setRequestApiKey(key.id).setRequestApiVersion(version)
                .setCorrelationId(CORRELATION_ID).setClientId(CLIENT_ID);
    }

    private static void print(
            ApiKeys key, short version, String kind, ApiMessage body, Message header, boolean tagged) throws Exception {
        short headerVersion =
                kind.equals("request") ? key.requestHeaderVersion(version) : key.responseHeaderVersion(version);
        byte[] head = bytes(header, headerVersion);
        byte[] tail = bytes(body, version);
        ByteBuffer frame = ByteBuffer.allocate(4 + head.length + tail.length);
        frame.putInt(head.length + tail.length).put(head).put(tail);
        ObjectNode line = new ObjectNode(JsonNodeFactory.instance);
        line.put("kafka", AppInfoParser.getVersion()).put("api", key.name()).put("api_key", key.id)
                .put("version", version).put("kind", kind).put("correlation_id", CORRELATION_ID);
        if (kind.equals("request")) {
            line.put("client_id", CLIENT_ID);
        }
        line.put("unknown_tagged_fields", tagged);
        line.set("body", write(key, kind, version, body));
        line.put("frame", HexFormat.of().formatHex(frame.array()));
        System.out.println(MAPPER.writeValueAsString(line));
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor out = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(out, cache, version);
        return out.buffer().array();
    }

    private static ApiMessage read(ApiKeys key, String kind, short version, JsonNode json) throws Exception {
        return (ApiMessage) converter(key, kind).getMethod("read", JsonNode.class, short.class)
                .invoke(null, json, version);
    }

    private static JsonNode write(ApiKeys key, String kind, short version, ApiMessage body) throws Exception {
        return (JsonNode) converter(key, kind).getMethod("write", body.getClass(), short.class)
                .invoke(null, body, version);
    }

    private static Class<?> converter(ApiKeys key, String kind) throws Exception {
        ApiMessageType type = key.messageType;
        Message sample = kind.equals("request") ? type.newRequest() : type.newResponse();
        return Class.forName(sample.getClass().getName() + "JsonConverter");
    }
}
