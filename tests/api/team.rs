//! Teams: listed by name.

use serde_json::json;

use crate::world::World;

on_both_databases!(the_default_team_is_there,);

async fn the_default_team_is_there(world: &World) {
    let body = world.api.get("/teams").await.body(200);
    let teams = body["data"].as_array().unwrap();
    assert_eq!(teams.len(), 1, "{body}");
    assert_eq!(
        (&teams[0]["id"], &teams[0]["name"]),
        (&json!(world.team), &json!("Default"))
    );
    assert!(teams[0]["createdAt"].is_i64());
    assert_eq!(teams[0].as_object().unwrap().len(), 3);
}
