import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's Java client behind a pipe: one JSON request a line on standard input, one JSON answer a line on standard
 * output, {"result": ...} or {"error": "<simple class name>", "message": ...}. Ends with its input.
 * Started from source by tests/support/java/reference_client.py, which documents the requests.
 */
public class ReferenceClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<String, Map<String, Object>> configs = new HashMap<>();
    private final Map<String, Admin> admins = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        ReferenceClient client = new ReferenceClient();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(JSON.writeValueAsString(client.answer(JSON.readTree(line))));
        }
        // The threads of clients that cannot reach their server must not keep this process.
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            answer.put("result", perform(request));
        } catch (Exception failure) {
            Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
            answer.put("error", cause.getClass().getSimpleName());
            answer.put("message", String.valueOf(cause.getMessage()));
        }
        return answer;
    }

    private Object perform(JsonNode request) throws Exception {
        String client = request.get("client").asText();
        String operation = request.get("operation").asText();
        if (operation.equals("property")) {
            System.setProperty(request.get("name").asText(), request.get("value").asText());
            return null;
        }
        if (operation.equals("open")) {
            configs.put(client, JSON.convertValue(request.get("config"), Map.class));
            admins.put(client, Admin.create(configs.get(client)));
            return null;
        }
        Admin admin = admins.get(client);
        switch (operation) {
            case "close":
                admins.remove(client).close(java.time.Duration.ZERO);
                return null;
            case "create":
                return create(admin, request);
            case "renew":
                return admin.renewDelegationToken(hmac(request), new RenewDelegationTokenOptions()
                        .renewTimePeriodMs(request.get("period_ms").asLong())).expiryTimestamp().get();
            case "expire":
                return admin.expireDelegationToken(hmac(request), new ExpireDelegationTokenOptions()
                        .expiryTimePeriodMs(request.get("period_ms").asLong())).expiryTimestamp().get();
            case "describe":
                return describe(admin, request);
            case "cluster":
                return List.of(admin.describeCluster().clusterId().get(), admin.describeCluster().nodes().get().size());
            case "topics":
                return admin.listTopics().names().get();
            case "survey":
                return survey(admin);
            case "produce":
                return produce(configs.get(client), request);
            default:
                throw new IllegalArgumentException("unknown operation " + operation);
        }
    }

    /** What a console for the web asks first; the answer of each call: its size, or the exception. */
    private static Object survey(Admin admin) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster(
                new DescribeClusterOptions().includeAuthorizedOperations(true));
        ConfigResource broker = new ConfigResource(
                ConfigResource.Type.BROKER, cluster.controller().get().idString());
        Map<String, Object> answers = new LinkedHashMap<>();
        answers.put("nodes", size(cluster.nodes()));
        answers.put("operations", size(cluster.authorizedOperations()));
        answers.put("configs", size(admin.describeConfigs(List.of(broker)).values().get(broker)
                .thenApply(Config::entries)));
        answers.put("features", size(admin.describeFeatures().featureMetadata()
                .thenApply(found -> found.finalizedFeatures().keySet())));
        answers.put("acls", size(admin.describeAcls(AclBindingFilter.ANY).values()));
        answers.put("topics", size(admin.listTopics(new ListTopicsOptions().listInternal(true)).names()));
        answers.put("groups", size(admin.listConsumerGroups().all()));
        answers.put("logDirs", size(admin.describeLogDirs(List.of(cluster.controller().get().id())).allDescriptions()
                .thenApply(Map::keySet)));
        answers.put("quorum", size(admin.describeMetadataQuorum().quorumInfo().thenApply(QuorumInfo::voters)));
        return answers;
    }

    private static Object size(KafkaFuture<? extends Collection<?>> answer) throws InterruptedException {
        try {
            return answer.get().size();
        } catch (ExecutionException failure) {
            return failure.getCause().getClass().getSimpleName();
        }
    }

    private static Object create(Admin admin, JsonNode request) throws Exception {
        CreateDelegationTokenOptions options = new CreateDelegationTokenOptions()
                .renewers(principals(request.get("renewers")))
                .maxlifeTimeMs(request.get("max_lifetime_ms").asLong());
        if (request.hasNonNull("owner")) {
            options.owner(principal(request.get("owner").asText()));
        }
        return fields(admin.createDelegationToken(options).delegationToken().get());
    }

    private static Object describe(Admin admin, JsonNode request) throws Exception {
        DescribeDelegationTokenOptions options = new DescribeDelegationTokenOptions();
        if (request.hasNonNull("owners")) {
            options.owners(principals(request.get("owners")));
        }
        List<Object> tokens = new ArrayList<>();
        for (DelegationToken token : admin.describeDelegationToken(options).delegationTokens().get()) {
            tokens.add(fields(token));
        }
        return tokens;
    }

    private static Object produce(Map<String, Object> config, JsonNode request) throws Exception {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            return producer.send(new ProducerRecord<>(request.get("topic").asText(), request.get("value").asText()))
                    .get().offset();
        }
    }

    private static Map<String, Object> fields(DelegationToken token) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("token_id", token.tokenInfo().tokenId());
        fields.put("hmac", token.hmacAsBase64String());
        fields.put("owner", token.tokenInfo().ownerAsString());
        fields.put("requester", token.tokenInfo().tokenRequester().toString());
        fields.put("renewers", List.copyOf(token.tokenInfo().renewersAsString()));
        fields.put("issue_timestamp_ms", token.tokenInfo().issueTimestamp());
        fields.put("expiry_timestamp_ms", token.tokenInfo().expiryTimestamp());
        fields.put("max_timestamp_ms", token.tokenInfo().maxTimestamp());
        return fields;
    }

    private static byte[] hmac(JsonNode request) {
        return Base64.getDecoder().decode(request.get("hmac").asText());
    }

    private static List<KafkaPrincipal> principals(JsonNode names) {
        List<KafkaPrincipal> principals = new ArrayList<>();
        for (JsonNode name : names) {
            principals.add(principal(name.asText()));
        }
        return principals;
    }

    /** Reads "User:alice"; Kafka's own class for it has not the same place in all releases. */
    private static KafkaPrincipal principal(String text) {
        int colon = text.indexOf(':');
        return new KafkaPrincipal(text.substring(0, colon), text.substring(colon + 1));
    }
}
