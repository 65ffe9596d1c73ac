//! rdkafka: logins with a token as plain SCRAM, the topics, and records in a group. It has no calls about tokens.
//!
//! How a test asks this program: the action is its argument, the settings are JSON on its standard input, and the answer
//! is JSON on its standard output. A failure is a line on standard error.

use std::error::Error;
use std::io::{stdin, stdout};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde::Deserialize;
use serde_json::{json, Value};

const WITHIN: Duration = Duration::from_secs(30);
/// librdkafka tries a refused login again and again; this is how long a list of topics may take.
const LISTED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Settings {
    servers: String,
    mechanism: String,
    user: String,
    password: String,
    #[serde(default)]
    topic: String,
    #[serde(default)]
    group: String,
    #[serde(default)]
    records: Vec<(String, String)>,
}

impl Settings {
    fn login(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.servers)
            .set("security.protocol", "SASL_PLAINTEXT")
            .set("sasl.mechanisms", &self.mechanism)
            .set("sasl.username", &self.user)
            .set("sasl.password", &self.password);
        config
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings: Settings = serde_json::from_reader(stdin())?;
    let answer = match std::env::args().nth(1).as_deref() {
        Some("topics") => topics(&settings)?,
        Some("records") => records(&settings)?,
        action => return Err(format!("unknown action {action:?}").into()),
    };
    Ok(serde_json::to_writer(stdout(), &answer)?)
}

fn topics(settings: &Settings) -> Result<Value, Box<dyn Error>> {
    let client: BaseConsumer = settings.login().create()?;
    let metadata = client.fetch_metadata(None, LISTED_WITHIN)?;
    let names: Vec<&str> = metadata.topics().iter().map(|topic| topic.name()).collect();
    Ok(json!(names))
}

fn records(settings: &Settings) -> Result<Value, Box<dyn Error>> {
    let producer: BaseProducer = settings.login().create()?;
    for (key, value) in &settings.records {
        let record = BaseRecord::to(&settings.topic).key(key).payload(value);
        producer.send(record).map_err(|(error, _)| error)?;
    }
    producer.flush(WITHIN)?;
    let consumer: BaseConsumer = settings
        .login()
        .set("group.id", &settings.group)
        .set("auto.offset.reset", "earliest")
        .create()?;
    consumer.subscribe(&[&settings.topic])?;
    let mut found = Vec::new();
    let started = Instant::now();
    while found.len() < settings.records.len() && started.elapsed() < WITHIN {
        if let Some(message) = consumer.poll(Duration::from_millis(200)) {
            let message = message?;
            let key = message.key_view::<str>().transpose()?;
            let value = message.payload_view::<str>().transpose()?;
            found.push(json!([message.partition(), key, value]));
        }
    }
    consumer.commit_consumer_state(CommitMode::Sync)?;
    Ok(json!(found))
}
