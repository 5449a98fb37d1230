//! Members: who belongs to the organization, newest first.

use contract::v1::MemberRole;
use serde_json::{Value, json};

use crate::world::World;

on_both_databases!(members_are_listed_newest_first, pages_hold_everyone_once);

async fn members_are_listed_newest_first(world: &World) {
    let (viewer, _) = world.admin.user(&world.organization, MemberRole::Viewer).await;
    let (members, next) = world.api.get("/members").await.page();
    assert_eq!(next, None);
    assert_eq!(members.len(), 2);
    let newest = &members[0];
    assert_eq!(
        (&newest["userId"], &newest["role"]),
        (&json!(viewer), &json!("viewer"))
    );
    assert_eq!(newest["name"], Value::Null);
    assert!(newest["email"].is_string() && newest["createdAt"].is_i64());
    assert_eq!(newest.as_object().unwrap().len(), 5);
    assert_eq!(
        (&members[1]["userId"], &members[1]["role"]),
        (&json!(world.owner), &json!("owner"))
    );
}

async fn pages_hold_everyone_once(world: &World) {
    for role in [MemberRole::Admin, MemberRole::Member, MemberRole::Viewer] {
        let _ = world.admin.user(&world.organization, role).await;
    }
    let paged = world.api.all_pages("/members?limit=1").await;
    let (whole, _) = world.api.get("/members?limit=1000").await.page();
    assert_eq!(paged, whole);
    assert_eq!(whole.len(), 4);
}
