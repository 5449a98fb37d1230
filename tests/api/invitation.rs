//! Invitations: made, listed, taken back; and the page where they are accepted.

use contract::v1::{MemberRole, SetPlanRequest, UpdateOrganizationRequest};
use http::Method;
use serde_json::{Value, json};
use test_support::{Answer, at_most, text, together};

use crate::world::World;

on_both_databases!(
    an_invitation_has_all_its_fields,
    bodies_are_checked,
    only_owners_invite_owners,
    an_email_is_invited_once,
    pending_invitations_take_seats,
    of_simultaneous_invitations_one_gets_the_seat,
    only_pending_ones_are_taken_back,
    the_list_is_filtered_and_bounded,
    the_page_lets_one_person_in_once,
    another_organizations_invitations_do_not_exist,
);

async fn invite(world: &World, email: &str, role: &str) -> Value {
    let body = json!({ "email": email, "role": role });
    world.api.post("/invitations", body).await.data(201)
}

async fn an_invitation_has_all_its_fields(world: &World) {
    let body = json!({ "email": " Ada@Example.com ", "role": "member", "teamId": world.team });
    let made = world.api.post("/invitations", body).await.data(201);
    assert_eq!(
        (&made["email"], &made["status"]),
        (&json!("Ada@Example.com"), &json!("pending"))
    );
    assert_eq!(
        (&made["role"], &made["teamId"]),
        (&json!("member"), &json!(world.team))
    );
    assert_eq!(made["inviterId"], world.owner.as_str());
    let week = 7 * 24 * 60 * 60 * 1000;
    let lasts = made["expiresAt"].as_i64().unwrap() - made["createdAt"].as_i64().unwrap();
    assert!((lasts - week).abs() < 60_000, "{lasts}");
    assert!(text(&made["invite_url"]).contains("://") && text(&made["invite_url"]).contains("/invite/"));
    assert_eq!(made.as_object().unwrap().len(), 9);
    let list = world.api.get("/invitations").await.body(200);
    assert_eq!(
        list,
        json!({ "data": [made], "truncated": false }),
        "the link can be relayed again"
    );
    let plain = invite(world, "no-team@example.com", "viewer").await;
    assert_eq!(plain["teamId"], Value::Null);
}

async fn bodies_are_checked(world: &World) {
    for email in [json!("x"), json!("@x.y"), json!(""), Value::Null, json!(1)] {
        world
            .api
            .post("/invitations", json!({ "email": email, "role": "member" }))
            .await
            .invalid("email");
    }
    for role in [json!("king"), json!("Owner"), json!(""), Value::Null] {
        world
            .api
            .post("/invitations", json!({ "email": "a@b.cd", "role": role }))
            .await
            .invalid("role");
    }
    world
        .api
        .post("/invitations", json!({ "email": "a@b.cd" }))
        .await
        .invalid("role");
    let team = json!({ "email": "a@b.cd", "role": "member", "teamId": "team_unknown" });
    world.api.post("/invitations", team).await.invalid("teamId");
    world.api.get("/invitations?status=open").await.invalid("status");
}

async fn only_owners_invite_owners(world: &World) {
    let (_, admin) = world.admin.user(&world.organization, MemberRole::Admin).await;
    let admin = world.api.with_key(Some(&admin.api_key));
    let refused = admin
        .post(
            "/invitations",
            json!({ "email": "boss@example.com", "role": "owner" }),
        )
        .await;
    refused.error(403, "ROLE_ESCALATION");
    let peer = admin
        .post(
            "/invitations",
            json!({ "email": "peer@example.com", "role": "admin" }),
        )
        .await;
    assert_eq!(peer.data(201)["role"], "admin");
    assert_eq!(invite(world, "boss@example.com", "owner").await["role"], "owner");
}

async fn an_email_is_invited_once(world: &World) {
    let first = invite(world, "grace@example.com", "member").await;
    let again = json!({ "email": "GRACE@Example.com", "role": "viewer" });
    world
        .api
        .post("/invitations", again.clone())
        .await
        .error(409, "invitation_exists");
    let _ = world
        .api
        .delete(format!("/invitations/{}", text(&first["id"])))
        .await
        .data(200);
    assert_ne!(
        world.api.post("/invitations", again).await.data(201)["invite_url"],
        first["invite_url"]
    );
    let member = json!({ "email": "Owner@localhost.test", "role": "member" });
    let answers = together((0..6).map(|_| {
        let (api, body) = (world.api.clone(), member.clone());
        async move { api.post("/invitations", body).await.status }
    }));
    let mut statuses = answers.await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
    let _ = world.admin.user(&world.organization, MemberRole::Viewer).await;
    let (members, _) = world.api.get("/members").await.page();
    let body = json!({ "email": text(&members[0]["email"]).to_uppercase(), "role": "member" });
    world.api.post("/invitations", body).await.error(409, "CONFLICT");
}

/// Puts the organization on a plan with this many seats.
async fn seats(world: &World, seats: i64) {
    let plan = format!("seats-{}", world.organization.to_lowercase());
    let wanted = SetPlanRequest {
        id: plan.clone(),
        seats: Some(at_most(seats)),
        ..SetPlanRequest::default()
    };
    world.admin.plan(wanted).await;
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        plan_id: Some(plan),
        ..UpdateOrganizationRequest::default()
    };
    world.admin.change(change).await;
}

async fn pending_invitations_take_seats(world: &World) {
    seats(world, 2).await;
    let first = invite(world, "first@example.com", "member").await;
    let body = json!({ "email": "second@example.com", "role": "member" });
    world
        .api
        .post("/invitations", body.clone())
        .await
        .error(403, "SEAT_LIMIT_REACHED");
    let request = contract::v1::CreateUserRequest {
        organization_id: world.organization.clone(),
        email: "third@example.com".to_owned(),
        role: MemberRole::Member.into(),
        name: None,
    };
    let refused = world.admin.client.clone().create_user(request).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    let _ = world
        .api
        .delete(format!("/invitations/{}", text(&first["id"])))
        .await
        .data(200);
    let second = world.api.post("/invitations", body).await.data(201);
    let accepted = page(world, &second, Method::POST, "name=Second").await;
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    let third = json!({ "email": "third@example.com", "role": "member" });
    world
        .api
        .post("/invitations", third)
        .await
        .error(403, "SEAT_LIMIT_REACHED");
}

async fn of_simultaneous_invitations_one_gets_the_seat(world: &World) {
    seats(world, 2).await;
    let invitations = (0..8).map(|number| {
        let api = world.api.clone();
        let body = json!({ "email": format!("p{number}@example.com"), "role": "member" });
        async move { api.post("/invitations", body).await.status }
    });
    let mut statuses = together(invitations).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403, 403, 403, 403, 403, 403, 403]);
}

async fn only_pending_ones_are_taken_back(world: &World) {
    let made = invite(world, "ada@example.com", "member").await;
    let path = format!("/invitations/{}", text(&made["id"]));
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(409, "invitation_not_pending");
    world
        .api
        .delete("/invitations/inv_unknown")
        .await
        .error(404, "NOT_FOUND");
    assert_eq!(page(world, &made, Method::GET, "").await.status, 410);
    assert_eq!(page(world, &made, Method::POST, "").await.status, 410);
}

async fn the_list_is_filtered_and_bounded(world: &World) {
    let cancelled = invite(world, "a@example.com", "member").await;
    let _ = world
        .api
        .delete(format!("/invitations/{}", text(&cancelled["id"])))
        .await
        .data(200);
    let pending = invite(world, "b@example.com", "member").await;
    let accepted = invite(world, "c@example.com", "member").await;
    let _ = page(world, &accepted, Method::POST, "").await;
    for (status, expected) in [
        ("cancelled", &cancelled),
        ("pending", &pending),
        ("accepted", &accepted),
    ] {
        let list = world
            .api
            .get(format!("/invitations?status={status}"))
            .await
            .data(200);
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
        assert_eq!(
            (&list[0]["id"], &list[0]["status"]),
            (&expected["id"], &json!(status))
        );
    }
    assert_eq!(
        world.api.get("/invitations?status=expired").await.data(200),
        json!([])
    );
    let bounded = world.api.get("/invitations?limit=2").await.body(200);
    assert_eq!(bounded["truncated"], true);
    assert_eq!(bounded["data"][0]["id"], accepted["id"], "newest first");
    assert_eq!(
        world.api.get("/invitations?limit=3").await.body(200)["truncated"],
        false
    );
    world.api.get("/invitations?limit=0").await.invalid("limit");
}

/// The page of an invitation, as a browser without any key asks for it.
async fn page(world: &World, invitation: &Value, method: Method, body: &str) -> Answer {
    let url = text(&invitation["invite_url"]);
    let path = &url[url.find("/invite/").unwrap()..];
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let browser = world.api.with_key(None);
    browser.send(method, path, &headers, body.to_owned().into()).await
}

async fn the_page_lets_one_person_in_once(world: &World) {
    let invitation = invite(world, "o'eve&co@example.com", "admin").await;
    let form = page(world, &invitation, Method::GET, "").await;
    assert_eq!(form.status, 200);
    assert!(form.header("content-type").starts_with("text/html"));
    assert_eq!(form.header("cache-control"), "no-store");
    assert_eq!(form.header("referrer-policy"), "no-referrer");
    let html = form.text();
    assert!(
        html.contains("<html lang=\"en\">") && html.contains("<label for=\"name\">"),
        "{html}"
    );
    assert!(
        html.contains("o&#39;eve&amp;co@example.com") && !html.contains("o'eve"),
        "{html}"
    );
    let long = format!("name={}", "x".repeat(201));
    assert_eq!(page(world, &invitation, Method::POST, &long).await.status, 400);
    // Looking changes nothing; of several who accept at once, one joins.
    let joins = (0..5).map(|_| {
        let url = text(&invitation["invite_url"]);
        let browser = world.api.with_key(None);
        async move {
            let path = url[url.find("/invite/").unwrap()..].to_owned();
            let body = "name=+Eve+%C3%9C+".to_owned();
            browser.send(Method::POST, &path, &[], body.into()).await.status
        }
    });
    let mut statuses = together(joins).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 410, 410, 410, 410]);
    let (members, _) = world.api.get("/members").await.page();
    assert_eq!(members.len(), 2);
    assert_eq!(
        (&members[0]["email"], &members[0]["name"], &members[0]["role"]),
        (&json!("o'eve&co@example.com"), &json!("Eve Ü"), &json!("admin"))
    );
    let unknown = world
        .api
        .with_key(None)
        .send(Method::GET, "/invite/unknown", &[], "".into())
        .await;
    assert_eq!(unknown.status, 404);
}

async fn another_organizations_invitations_do_not_exist(world: &World) {
    let stranger = world.stranger().await;
    let body = json!({ "email": "a@example.com", "role": "member" });
    let theirs = stranger.post("/invitations", body.clone()).await.data(201);
    let path = format!("/invitations/{}", text(&theirs["id"]));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(world.api.get("/invitations").await.data(200), json!([]));
    let _ = world.api.post("/invitations", body).await.data(201);
    let _ = stranger.delete(&path).await.data(200);
}
