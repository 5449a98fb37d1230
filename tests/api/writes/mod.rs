//! Every method that writes leaves one entry in the activity feed, in the transaction of its write: the contract's table
//! of methods is walked. A method that is not known here fails the walk.

mod operator;

use contract::access::Method as Rpc;
use contract::rest::Route;
use http::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use test_support::{Answer, Api, graphs, text};

use crate::world::World;

on_both_databases!(
    each_write_leaves_one_entry,
    a_replayed_start_leaves_no_second_entry,
    without_its_entry_there_is_no_write,
);

/// A call of a method with a route.
struct Call {
    /// What stands in the path's places, in order.
    path: Vec<String>,
    body: Value,
    /// What the feed tells of it; nothing for what only looks.
    action: Option<&'static str>,
}

impl Call {
    fn of(path: &[&str], body: Value, action: &'static str) -> Self {
        Self {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            body,
            action: Some(action),
        }
    }

    async fn make(&self, api: &Api, route: &Route, path: &[String], body: &Value, id: &str) -> Answer {
        let mut parts = path.iter();
        let segments = route
            .path
            .split('/')
            .map(|segment| match segment.starts_with('{') {
                true => parts.next().unwrap().as_str(),
                false => segment,
            });
        let path = segments.collect::<Vec<_>>().join("/");
        let verb: Method = route.verb.parse().unwrap();
        let mut headers = vec![("x-request-id", id)];
        let mut sent = bytes::Bytes::new();
        if verb != Method::DELETE {
            headers.push(("content-type", "application/json"));
            sent = body.to_string().into();
        }
        api.send(verb, &path, &headers, sent).await
    }

    /// As it should be.
    async fn rightly(&self, api: &Api, route: &Route, id: &str) -> Answer {
        self.make(api, route, &self.path, &self.body, id).await
    }

    /// For something that does not exist; or, for a method that names nothing, without a body.
    async fn wrongly(&self, api: &Api, route: &Route, id: &str) -> Answer {
        match self.path.is_empty() || route.rpc.ends_with("/SetVariable") {
            true => self.make(api, route, &self.path, &json!({}), id).await,
            false => {
                let unknown = vec!["1".to_owned(); self.path.len()];
                self.make(api, route, &unknown, &self.body, id).await
            }
        }
    }
}

/// The routes that write, and the methods behind them. Those that are not there yet cannot.
fn writing_routes() -> Vec<(&'static Route, &'static Rpc)> {
    let mut routes: Vec<&'static Route> = Vec::new();
    macro_rules! collect {
        ($shape:ident $routes:ident, $route:path, $request:path, $response:path) => {
            $routes.push(&$route)
        };
    }
    contract::for_each_route!(collect, routes);
    let writing = routes
        .into_iter()
        .map(|route| (route, Rpc::find(route.rpc).unwrap()))
        .filter(|(_, method)| !method.reads && !is_missing(method) && !asks_a_service(method));
    writing.collect()
}

/// It changes nothing here, whatever the service does that it asks.
fn asks_a_service(method: &Rpc) -> bool {
    let names = ["/ListDynamicOptions", "/TestModule"];
    names.iter().any(|name| method.path.ends_with(name))
}

fn is_missing(method: &Rpc) -> bool {
    let missing = include_str!("../../golden/unimplemented.txt");
    missing.lines().any(|line| line == method.path)
}

async fn made(api: &Api, noun: &str, body: Value) -> String {
    text(&api.post(format!("/{noun}"), body).await.data(201)["id"])
}

async fn small_flow(api: &Api) -> String {
    api.workflow_with("Mine", graphs::small_flow()).await
}

/// A run that failed at node 2.
async fn failed_run(api: &Api) -> String {
    let wrong = json!({ "fields": { "wrong": "{{1.nothing * 2}}" } });
    let flow = graphs::chain(&[("manual_trigger", json!({})), ("set", wrong)]);
    let workflow = api.workflow_with("Fails", flow).await;
    let run = api.start(&workflow, json!({})).await;
    assert_eq!(api.ended(&run).await["status"], "failed");
    run
}

/// What a method needs, made, and its call.
async fn prepared(api: &Api, route: &Route) -> Call {
    match route.rpc.rsplit('/').next().unwrap() {
        "CreateWorkflow" => Call::of(&[], json!({ "name": "w" }), "workflow.created"),
        "UpdateWorkflow" => {
            let workflow = api.workflow("w").await;
            Call::of(&[&workflow], json!({ "name": "renamed" }), "workflow.updated")
        }
        "DeleteWorkflow" => Call::of(&[&api.workflow("w").await], json!({}), "workflow.deleted"),
        "ApplyGraphOps" => {
            let workflow = api.workflow("w").await;
            let draft = api.get(format!("/workflows/{workflow}")).await.data(200);
            let body = json!({ "ops": graphs::small_flow(), "expectedUpdatedAt": draft["updatedAt"] });
            Call::of(&[&workflow], body, "workflow.updated")
        }
        "DeployWorkflow" => Call::of(&[&small_flow(api).await], json!({}), "workflow.deployed"),
        "UndeployWorkflow" => {
            let workflow = small_flow(api).await;
            let path = format!("/workflows/{workflow}/deploy");
            let _ = api.post(path, json!({})).await.data(200);
            Call::of(&[&workflow], json!({}), "workflow.undeployed")
        }
        "ValidateWorkflow" => Call {
            action: None,
            ..Call::of(&[&small_flow(api).await], json!({}), "")
        },
        "ResolveExpression" => Call {
            action: None,
            ..Call::of(&[&small_flow(api).await], json!({ "expression": "{{1}}" }), "")
        },
        "SetWorkflowTags" => {
            let (workflow, tag) = (api.workflow("w").await, tag(api).await);
            Call::of(&[&workflow], json!({ "tagIds": [tag] }), "workflow.updated")
        }
        "StartRun" => Call::of(&[&small_flow(api).await], json!({}), "run.started"),
        "CancelRun" => {
            let workflow = api.workflow_with("Waits", graphs::long_wait()).await;
            let run = api.start(&workflow, json!({})).await;
            Call::of(&[&run], json!({}), "run.cancelled")
        }
        "RerunRun" => Call::of(&[&failed_run(api).await], json!({}), "run.rerun"),
        "RetryRunNode" => {
            let run = failed_run(api).await;
            Call::of(&[&run], json!({ "nodeId": 2 }), "run.node_retried")
        }
        "RespondRunNode" => {
            let flow = graphs::chain(&[("manual_trigger", json!({})), ("human_input", json!({}))]);
            let workflow = api.workflow_with("Asks", flow).await;
            let run = api.start(&workflow, json!({})).await;
            let _ = api.reached(&run, &["waiting"]).await;
            Call::of(&[&run, "2"], json!({ "response": {} }), "run.node_answered")
        }
        "SetVariable" => Call::of(&["NEW"], json!({ "value": "v" }), "variable.created"),
        "DeleteVariable" => {
            let set = api.put("/variables/OLD", json!({ "value": "v" })).await.json();
            Call::of(&[&text(&set["data"]["id"])], json!({}), "variable.deleted")
        }
        "CreateDatabase" => Call::of(&[], table(), "database.created"),
        "UpdateDatabase" => {
            let database = made(api, "databases", table()).await;
            let columns = json!({ "columns": [{ "name": "b", "type": "text" }] });
            Call::of(&[&database], columns, "database.updated")
        }
        "DeleteDatabase" => Call::of(
            &[&made(api, "databases", table()).await],
            json!({}),
            "database.deleted",
        ),
        "CreateStructure" => Call::of(&[], json!({ "name": "s" }), "structure.created"),
        "UpdateStructure" => {
            let structure = made(api, "structures", json!({ "name": "s" })).await;
            Call::of(&[&structure], json!({ "name": "t" }), "structure.updated")
        }
        "CreateFunction" => Call::of(
            &[],
            json!({ "name": "made", "code": "return 1" }),
            "function.created",
        ),
        "UpdateFunction" => {
            let body = json!({ "name": "changed", "code": "return 1" });
            let function = made(api, "functions", body).await;
            Call::of(&[&function], json!({ "code": "return 2" }), "function.updated")
        }
        "CreateCredential" => Call::of(&[], credential(), "credential.created"),
        "UpdateCredential" => {
            let credential = made_credential(api).await;
            Call::of(&[&credential], json!({ "name": "renamed" }), "credential.updated")
        }
        "DeleteCredential" => Call::of(&[&made_credential(api).await], json!({}), "credential.deleted"),
        "VerifyCredential" => {
            let credential = made_credential(api).await;
            Call::of(&[&credential], json!({}), "credential.verified")
        }
        "CreateFolder" => Call::of(&[], json!({ "name": "f" }), "folder.created"),
        "UpdateFolder" => {
            let folder = made(api, "folders", json!({ "name": "f" })).await;
            Call::of(&[&folder], json!({ "name": "g" }), "folder.updated")
        }
        "DeleteFolder" => {
            let folder = made(api, "folders", json!({ "name": "f" })).await;
            Call::of(&[&folder], json!({}), "folder.deleted")
        }
        "CreateTag" => Call::of(&[], json!({ "name": "t", "color": "red" }), "tag.created"),
        "UpdateTag" => Call::of(&[&tag(api).await], json!({ "color": "blue" }), "tag.updated"),
        "DeleteTag" => Call::of(&[&tag(api).await], json!({}), "tag.deleted"),
        "MintWebhook" => {
            let workflow = api.workflow_with("Hooked", graphs::order_flow()).await;
            Call::of(&[&workflow], json!({ "nodeId": "1" }), "webhook.created")
        }
        "UpdateWebhook" => Call::of(
            &[&webhook(api).await],
            json!({ "enabled": false }),
            "webhook.updated",
        ),
        "DeleteWebhook" => {
            let webhook = webhook(api).await;
            let path = format!("{webhook}?force=1");
            Call::of(&[&path], json!({}), "webhook.deleted")
        }
        "CreateInvitation" => {
            let body = json!({ "email": "new@users.test", "role": "member" });
            Call::of(&[], body, "invitation.created")
        }
        "DeleteInvitation" => {
            let body = json!({ "email": "unwanted@users.test", "role": "member" });
            let invitation = made(api, "invitations", body).await;
            Call::of(&[&invitation], json!({}), "invitation.cancelled")
        }
        method => panic!("{method} writes: say here how it is called and what the feed tells of it"),
    }
}

fn table() -> Value {
    json!({ "name": "d", "columns": [{ "name": "a", "type": "text" }] })
}

fn credential() -> Value {
    json!({ "appId": "http", "connectionId": "bearer", "name": "c", "data": { "token": "kept-secret" } })
}

async fn made_credential(api: &Api) -> String {
    let made = api.post("/credentials", credential()).await.data(200);
    text(&made["credentialId"])
}

async fn tag(api: &Api) -> String {
    made(api, "tags", json!({ "name": "t", "color": "red" })).await
}

async fn webhook(api: &Api) -> String {
    let workflow = api.workflow_with("Hooked", graphs::order_flow()).await;
    api.mint(&workflow, 1).await
}

/// The entries of one request.
async fn told(api: &Api, request_id: &str) -> Vec<Value> {
    let page = api.get("/activity?limit=200").await.data(200);
    let events = page["events"].as_array().unwrap().iter();
    events
        .filter(|event| event["metadata"]["requestId"] == request_id)
        .cloned()
        .collect()
}

/// What the answer to a write says it made, or else what its path names.
fn written(call: &Call, answer: &Answer) -> String {
    let data = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()["data"].clone();
    let ids = ["runId", "webhookId", "credentialId", "id"].iter();
    let id = ids.filter_map(|name| data[*name].as_str()).next();
    let named = call.path.first().map(|part| part.trim_end_matches("?force=1"));
    id.or(named).unwrap().to_owned()
}

async fn each_write_leaves_one_entry(world: &World) {
    let key = world
        .admin
        .key(&world.organization, &world.owner, &[], None)
        .await;
    let api = world.api.with_key(Some(&key.api_key));
    let routes = writing_routes();
    assert!(routes.len() > 30, "{}", routes.len());
    for (route, method) in routes {
        let call = prepared(&api, route).await;
        let (done, refused) = (format!("done {}", route.rpc), format!("refused {}", route.rpc));
        let (done, refused) = (done.replace(['/', ' '], "-"), refused.replace(['/', ' '], "-"));
        let answer = call.wrongly(&api, route, &refused).await;
        assert!(
            (400..500).contains(&answer.status),
            "{}: {}",
            method.path,
            answer.text()
        );
        assert_eq!(told(&api, &refused).await, [Value::Null; 0], "{}", method.path);

        let answer = call.rightly(&api, route, &done).await;
        assert!(
            (200..300).contains(&answer.status),
            "{}: {}",
            method.path,
            answer.text()
        );
        let entries = told(&api, &done).await;
        let Some(action) = call.action else {
            assert_eq!(entries, [Value::Null; 0], "{}", method.path);
            continue;
        };
        assert_eq!(entries.len(), 1, "{}: {entries:?}", method.path);
        let entry = &entries[0];
        assert_eq!(entry["action"], action, "{}", method.path);
        assert_eq!(
            entry["targetType"],
            action.split('.').next().unwrap(),
            "{}",
            method.path
        );
        assert_eq!(entry["targetId"], written(&call, &answer), "{}", method.path);
        assert_eq!(entry["actorUserId"], world.owner, "{}", method.path);
        assert_eq!(entry["metadata"]["apiKeyId"], key.id, "{}", method.path);
        assert!(entry["metadata"]["ip"].is_string(), "{}", method.path);
    }
}

async fn a_replayed_start_leaves_no_second_entry(world: &World) {
    let workflow = small_flow(&world.api).await;
    let path = format!("/workflows/{workflow}/runs");
    for id in ["first", "second"] {
        let headers = [("idempotency-key", "once"), ("x-request-id", id)];
        let _ = world.api.post_with(&path, &headers, json!({})).await.data(201);
    }
    let other_body = [("idempotency-key", "once"), ("x-request-id", "third")];
    let refused = world
        .api
        .post_with(&path, &other_body, json!({ "nodeId": "2" }))
        .await;
    refused.error(409, "idempotency_key_reused");
    assert_eq!(told(&world.api, "first").await.len(), 1);
    assert_eq!(told(&world.api, "second").await.len(), 0);
    assert_eq!(told(&world.api, "third").await.len(), 0);
    let all = world.api.get("/activity?action=run.started").await.data(200);
    assert_eq!(all["events"].as_array().unwrap().len(), 1);
}

/// Makes the database refuse entries of organizations for which it was told to, and tells it.
async fn refuse_entries(world: &World, refuse: bool) {
    let setting = format!("refuse-{}", world.organization);
    let statement = match refuse {
        true => format!("INSERT INTO settings (key, value) VALUES ('{setting}', '')"),
        false => format!("DELETE FROM settings WHERE key = '{setting}'"),
    };
    match world.server.database_url() {
        Some(url) => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            let told =
                "CREATE OR REPLACE FUNCTION refuse_entry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF EXISTS (SELECT 1 FROM settings WHERE key = 'refuse-' || NEW.organization_id)
                    THEN RAISE EXCEPTION 'injected'; END IF; RETURN NEW; END $$;
                CREATE OR REPLACE TRIGGER refuse_entry BEFORE INSERT ON activity
                    FOR EACH ROW EXECUTE FUNCTION refuse_entry();";
            let trigger = if refuse { told } else { "" };
            let all = AssertSqlSafe(format!("{trigger} {statement}"));
            sqlx::raw_sql(all).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        None => {
            let file = world.server.data_dir().join("switchyard.db");
            let url = format!("sqlite://{}", file.display());
            let mut connection = SqliteConnection::connect(&url).await.unwrap();
            let trigger = "CREATE TRIGGER IF NOT EXISTS refuse_entry BEFORE INSERT ON activity
                WHEN EXISTS (SELECT 1 FROM settings WHERE key = 'refuse-' || NEW.organization_id)
                BEGIN SELECT RAISE(ABORT, 'injected'); END;";
            let all = AssertSqlSafe(format!("{trigger} {statement}"));
            sqlx::raw_sql(all).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

/// Everything that lists show of the organization.
async fn everything(api: &Api, call: &Call) -> Vec<Value> {
    let mut seen = Vec::new();
    for list in [
        "/workflows?limit=200",
        "/folders",
        "/tags",
        "/variables",
        "/credentials",
        "/databases",
        "/structures",
        "/functions",
        "/webhooks",
        "/invitations",
        "/activity",
    ] {
        seen.push(api.get(list).await.body(200));
    }
    // What the call is about, whatever it is.
    if let Some(id) = call.path.first() {
        for noun in ["workflows", "databases", "structures", "functions", "runs"] {
            seen.push(api.get(format!("/{noun}/{id}")).await.json()["data"].clone());
        }
        seen.push(api.get(format!("/runs?workflowId={id}")).await.json()["data"].clone());
    }
    seen
}

async fn without_its_entry_there_is_no_write(world: &World) {
    for (route, method) in writing_routes() {
        let call = prepared(&world.api, route).await;
        if call.action.is_none() {
            continue;
        }
        let before = everything(&world.api, &call).await;
        refuse_entries(world, true).await;
        let answer = call.rightly(&world.api, route, "injected").await;
        refuse_entries(world, false).await;
        if ["/CancelRun", "/RespondRunNode"]
            .iter()
            .any(|asks| route.rpc.ends_with(asks))
        {
            // A run whose records the database refuses is failed; what was asked of it is not done.
            assert!(answer.status >= 400, "{}", answer.text());
            let report = world.api.ended(&call.path[0]).await;
            assert_eq!(report["status"], "failed", "{report}");
            continue;
        }
        assert!(answer.status >= 500, "{}: {}", method.path, answer.text());
        assert_eq!(everything(&world.api, &call).await, before, "{}", method.path);
        let again = call.rightly(&world.api, route, "not-injected").await;
        assert!(again.status < 300, "{}: {}", method.path, again.text());
    }
}
