//! The page behind a request's link, by plain HTTP and in a real browser.

use contract::v1::{BillingStatus, UpdateOrganizationRequest};
use http::Method;
use serde_json::{Value, json};
use test_support::{Answer, browser_or_skip, text, together};

use super::people::{approval, requests, waiting};
use crate::world::World;

on_both_databases!(
    a_link_is_answered_once,
    of_links_and_calls_one_wins,
    a_link_ends_with_its_request,
    wrong_answers_come_back_as_they_were_typed,
    texts_of_forms_are_no_markup,
    a_person_answers_in_a_browser,
);

/// The path of a request's link.
fn path(request: &Value) -> String {
    let url = text(&request["answer_url"]);
    url[url.find("/answer/").unwrap()..].to_owned()
}

/// The page, as a browser without any key asks for it.
async fn page(world: &World, path: &str, method: Method, body: &str) -> Answer {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let browser = world.api.with_key(None);
    browser.send(method, path, &headers, body.to_owned().into()).await
}

async fn a_link_is_answered_once(world: &World) {
    let (run, request) = waiting(world, approval()).await;
    let path = path(&request);
    let form = page(world, &path, Method::GET, "").await;
    assert_eq!(form.status, 200);
    assert!(form.header("content-type").starts_with("text/html"));
    for (header, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(form.header(header), value);
    }
    let policy = form.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    let html = form.text();
    for part in [
        "<h1>Approve order 7</h1>",
        "Is it fine?",
        "<label for=\"field-0\">Approve?</label>",
        "<label for=\"field-1\">amount (optional)</label>",
        "type=\"number\"",
        "<label for=\"field-2\">until (UTC) (optional)</label>",
        "type=\"datetime-local\"",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
    assert!(!html.contains("<script"), "{html}");
    let body = "approved=true&amount=12&until=2026-01-31T09%3A00";
    let thanks = page(world, &path, Method::POST, body).await;
    assert_eq!(thanks.status, 200, "{}", thanks.text());
    let report = world.api.ended(&run).await;
    let output = &report["nodes"][0]["output"];
    let kept = json!({ "approved": true, "amount": 12, "until": "2026-01-31T09:00:00Z" });
    assert_eq!(
        (&output["response"], &output["respondedBy"]),
        (&kept, &Value::Null)
    );
    for method in [Method::GET, Method::POST] {
        let over = page(world, &path, method, body).await;
        assert_eq!(over.status, 410);
        assert!(over.text().contains("This question is over"));
    }
}

async fn of_links_and_calls_one_wins(world: &World) {
    let (run, request) = waiting(world, approval()).await;
    let answers = (0..12).map(|number| {
        let (api, path, run) = (world.api.clone(), path(&request), run.clone());
        async move {
            if number % 2 == 0 {
                let browser = api.with_key(None);
                return browser
                    .send(Method::POST, &path, &[], "approved=false".into())
                    .await
                    .status;
            }
            let body = json!({ "response": { "approved": true } });
            api.post(format!("/runs/{run}/nodes/2/respond"), body)
                .await
                .status
        }
    });
    let mut statuses = together(answers).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200, "{statuses:?}");
    assert!(
        statuses[1..].iter().all(|status| [409, 410].contains(status)),
        "{statuses:?}"
    );
}

async fn a_link_ends_with_its_request(world: &World) {
    let (run, request) = waiting(world, approval()).await;
    let _ = world
        .api
        .post(format!("/runs/{run}/cancel"), json!({}))
        .await
        .data(200);
    assert_eq!(page(world, &path(&request), Method::GET, "").await.status, 410);
    let _ = world
        .api
        .post(format!("/runs/{run}/rerun"), json!({}))
        .await
        .data(201);
    let second = super::people::open(world, &run).await;
    assert_eq!(
        page(world, &path(&request), Method::POST, "approved=true")
            .await
            .status,
        410
    );
    // Somebody's guess.
    let guess = path(&second);
    let guess = format!(
        "{}{}",
        &guess[..guess.len() - 1],
        if guess.ends_with('0') { '1' } else { '0' }
    );
    for unknown in [guess.as_str(), "/answer/x", "/answer/%00", "/answer/%C3%A4"] {
        assert_eq!(
            page(world, unknown, Method::GET, "").await.status,
            404,
            "{unknown}"
        );
    }
    let mut change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        billing_status: BillingStatus::PastDue.into(),
        ..Default::default()
    };
    world.admin.change(change.clone()).await;
    let unpaid = page(world, &path(&second), Method::POST, "approved=true").await;
    assert_eq!(unpaid.status, 402);
    change.billing_status = BillingStatus::Ok.into();
    world.admin.change(change).await;
    assert_eq!(
        page(world, &path(&second), Method::POST, "approved=true")
            .await
            .status,
        200
    );
}

async fn wrong_answers_come_back_as_they_were_typed(world: &World) {
    let fields = json!([
        { "name": "mail", "type": "email", "required": true },
        { "name": "data", "type": "object" },
        { "name": "fine", "type": "boolean" },
    ]);
    let (run, request) = waiting(world, json!({ "title": "Details", "fields": fields })).await;
    let body = "mail=nobody&data=%7B%22a%22%3A&fine=true&other=1";
    let back = page(world, &path(&request), Method::POST, body).await;
    assert_eq!(back.status, 400);
    let html = back.text();
    assert!(
        html.contains("<p class=\"wrong\" id=\"field-1-wrong\">must be JSON"),
        "{html}"
    );
    assert!(
        html.contains("value=\"nobody\"") && html.contains("\n{&quot;a&quot;:</textarea>"),
        "{html}"
    );
    assert!(html.contains("<option value=\"true\" selected>"), "{html}");
    let back = page(world, &path(&request), Method::POST, "mail=nobody&data=%5B%5D")
        .await
        .text();
    for part in [
        "id=\"field-0-wrong\">must be an email",
        "id=\"field-1-wrong\">must be an object",
    ] {
        assert!(back.contains(part), "{part} is not in {back}");
    }
    let missing = page(world, &path(&request), Method::POST, "").await.text();
    assert!(missing.contains("id=\"field-0-wrong\">is required"), "{missing}");
    assert_eq!(
        requests(world, &format!("runId={run}")).await.len(),
        1,
        "nothing was recorded"
    );
    let sent = page(world, &path(&request), Method::POST, "mail=a%40b.cd&data=&fine=").await;
    assert_eq!(sent.status, 200);
    let report = world.api.ended(&run).await;
    assert_eq!(
        report["nodes"][0]["output"]["response"],
        json!({ "mail": "a@b.cd" })
    );
}

async fn texts_of_forms_are_no_markup(world: &World) {
    let nasty = "\"><script>alert('x')</script>";
    let form = json!({
        "title": nasty, "message": nasty, "fields": [{ "name": nasty, "label": nasty, "type": "text" }],
    });
    let (_, request) = waiting(world, form).await;
    let html = page(world, &path(&request), Method::GET, "").await.text();
    assert!(!html.contains("<script") && !html.contains("\"><"), "{html}");
    assert!(
        html.contains("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)"),
        "{html}"
    );
}

async fn a_person_answers_in_a_browser(world: &World) {
    let Some(browser) = browser_or_skip("a person answers in a browser").await else {
        return;
    };
    let fields = json!([
        { "name": "approved", "type": "boolean", "required": true, "label": "Approve?" },
        { "name": "name", "type": "text", "required": true, "label": "Your <name>" },
        { "name": "amount", "type": "integer" },
        { "name": "data", "type": "json", "label": "Details" },
    ]);
    let (run, request) = waiting(
        world,
        json!({ "title": "Order <b>7</b>", "message": "Fine?", "fields": fields }),
    )
    .await;
    let url = text(&request["answer_url"]);
    browser.open(&url).await;
    assert_eq!(browser.title().await, "Order <b>7</b>");
    browser.shows("h1", "Order <b>7</b>").await;
    assert_eq!(browser.text("label[for=field-1]").await, "Your <name>");
    // The browser itself keeps a form with a required field left empty.
    browser.click("button").await;
    browser.shows("h1", "Order <b>7</b>").await;
    browser.click("#field-0 option[value=true]").await;
    browser.type_into("#field-1", "Eve \"Ü\" & co").await;
    browser.type_into("#field-2", "12").await;
    browser.type_into("#field-3", "{\"a\": [1,").await;
    browser.click("button").await;
    browser.shows("#field-3-wrong", "must be JSON").await;
    assert_eq!(browser.value("#field-0").await, "true");
    assert_eq!(browser.value("#field-1").await, "Eve \"Ü\" & co");
    assert_eq!(browser.value("#field-2").await, "12");
    assert_eq!(browser.value("#field-3").await, "{\"a\": [1,");
    browser.type_into("#field-3", "{\"a\": [1]}").await;
    browser.click("button").await;
    browser.shows("h1", "Thank you").await;
    let report = world.api.ended(&run).await;
    let kept = json!({ "approved": true, "name": "Eve \"Ü\" & co", "amount": 12, "data": { "a": [1] } });
    assert_eq!(report["nodes"][0]["output"]["response"], kept);
    browser.open(&url).await;
    browser.shows("h1", "This question is over").await;
}
