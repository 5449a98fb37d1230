//! Lists of workflows: pages that neither skip nor repeat, and filters that mean what they say.

use std::collections::HashSet;

use core_service::store::{
    Actor, NewDeployment, NewWorkflow, Position, Sort, SortBy, StatusFilter, TagFilter, WorkflowChange,
    WorkflowFilter,
};

use crate::fixture::{Fixture, draft, graph};

on_both_databases!(
    pages_neither_skip_nor_repeat_under_concurrent_inserts,
    every_sort_orders_and_pages,
    a_search_takes_wildcards_literally,
    a_search_ignores_case_beyond_ascii,
    states_are_told_apart,
    a_folder_covers_its_descendants,
    tags_match_any_or_all,
    a_position_of_another_sort_finds_nothing,
);

const NEWEST: Sort = Sort {
    by: SortBy::CreatedAt,
    descending: true,
};
const OLDEST: Sort = Sort {
    by: SortBy::CreatedAt,
    descending: false,
};

/// The names found, in order, over pages of two.
async fn names(fixture: &Fixture, filter: &WorkflowFilter, sort: Sort) -> Vec<String> {
    let mut names = Vec::new();
    let mut after: Option<Position<String>> = None;
    loop {
        let page = fixture
            .store
            .list_workflows(fixture.organization_id(), filter, sort, after.as_ref(), 2)
            .await
            .unwrap();
        let Some(last) = page.last() else { return names };
        after = Some(last.position(sort));
        names.extend(page.into_iter().map(|workflow| workflow.name));
    }
}

async fn found(fixture: &Fixture, filter: &WorkflowFilter) -> HashSet<String> {
    names(fixture, filter, OLDEST).await.into_iter().collect()
}

fn set(names: &[&str]) -> HashSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn described(fixture: &Fixture, name: &str, description: &str) {
    let draft = draft("empty");
    let new = NewWorkflow {
        name,
        description: Some(description),
        team_id: None,
        folder_id: None,
        draft: &draft,
    };
    fixture
        .store
        .create_workflow(&Actor::default(), fixture.organization_id(), &new)
        .await
        .unwrap();
}

async fn pages_neither_skip_nor_repeat_under_concurrent_inserts(fixture: &Fixture) {
    for number in 0..20 {
        fixture.workflow(&format!("old {number}")).await;
    }
    for sort in [NEWEST, OLDEST] {
        let (store, organization) = (fixture.store.clone(), fixture.organization_id().to_owned());
        let writer = tokio::spawn(async move {
            for number in 0..20 {
                crate::fixture::workflow(&store, &organization, &format!("new {number}")).await;
            }
        });
        let names = names(fixture, &WorkflowFilter::default(), sort).await;
        writer.await.unwrap();
        let old: Vec<&String> = names.iter().filter(|name| name.starts_with("old")).collect();
        assert_eq!(old.len(), 20, "nothing skipped or repeated: {names:?}");
        assert_eq!(old.iter().collect::<HashSet<_>>().len(), 20);
    }
}

async fn every_sort_orders_and_pages(fixture: &Fixture) {
    for name in ["b", "A", "ä", "C", "a"] {
        fixture.workflow(name).await;
    }
    let all = WorkflowFilter::default();
    let by_name = Sort {
        by: SortBy::Name,
        descending: false,
    };
    assert_eq!(
        names(fixture, &all, by_name).await,
        ["A", "a", "b", "C", "ä"],
        "ties by id; no locale"
    );
    let mut reversed = names(
        fixture,
        &all,
        Sort {
            descending: true,
            ..by_name
        },
    )
    .await;
    reversed.reverse();
    assert_eq!(reversed, ["A", "a", "b", "C", "ä"]);
    assert_eq!(names(fixture, &all, OLDEST).await, ["b", "A", "ä", "C", "a"]);
    let updated = Sort {
        by: SortBy::UpdatedAt,
        descending: true,
    };
    assert_eq!(names(fixture, &all, updated).await, ["a", "C", "ä", "A", "b"]);
}

async fn a_search_takes_wildcards_literally(fixture: &Fixture) {
    for name in [
        "50% off",
        "50 euros off",
        "under_score",
        "underscore",
        "back\\slash",
    ] {
        fixture.workflow(name).await;
    }
    for (query, expected) in [
        ("50%", &["50% off"][..]),
        ("r_s", &["under_score"]),
        ("k\\s", &["back\\slash"]),
        ("off", &["50% off", "50 euros off"]),
        ("' OR 1=1 --", &[]),
    ] {
        let filter = WorkflowFilter {
            query: Some(query.to_owned()),
            ..WorkflowFilter::default()
        };
        assert_eq!(found(fixture, &filter).await, set(expected), "{query}");
    }
}

async fn a_search_ignores_case_beyond_ascii(fixture: &Fixture) {
    described(fixture, "Größe ÄÖÜ", "Ежедневный отчёт").await;
    described(fixture, "other", "nothing").await;
    for query in ["äöü", "GRÖSSE ÄÖÜ".replace("SS", "ß").as_str(), "ОТЧЁТ", "größe"] {
        let filter = WorkflowFilter {
            query: Some(query.to_owned()),
            ..WorkflowFilter::default()
        };
        assert_eq!(found(fixture, &filter).await, set(&["Größe ÄÖÜ"]), "{query}");
    }
}

async fn states_are_told_apart(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let frozen = graph("one");
    for name in ["draft", "deployed", "modified"] {
        let workflow = fixture.workflow(name).await;
        if name == "draft" {
            let change = WorkflowChange {
                active: Some(true),
                ..WorkflowChange::default()
            };
            store
                .update_workflow(&actor, organization, &workflow.id, &change)
                .await
                .unwrap();
            continue;
        }
        let new = NewDeployment {
            expected_updated_at: workflow.updated_at,
            graph: &frozen,
            error_triggers: &[],
            polls: &[],
            registrations: &[],
        };
        store
            .deploy_workflow(&actor, organization, &workflow.id, &new)
            .await
            .unwrap();
        if name == "modified" {
            let current = store.workflow(organization, &workflow.id).await.unwrap();
            let changed = draft("changed");
            store
                .save_draft(&actor, organization, &workflow.id, current.updated_at, &changed)
                .await
                .unwrap();
        }
    }
    for (status, expected) in [
        (StatusFilter::Active, &["draft"][..]),
        (StatusFilter::Inactive, &["deployed", "modified"]),
        (StatusFilter::Draft, &["draft"]),
        (StatusFilter::Deployed, &["deployed", "modified"]),
        (StatusFilter::Modified, &["modified"]),
    ] {
        let filter = WorkflowFilter {
            status: Some(status),
            ..WorkflowFilter::default()
        };
        assert_eq!(found(fixture, &filter).await, set(expected), "{status:?}");
    }
}

async fn a_folder_covers_its_descendants(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let root = store
        .create_folder(&actor, organization, "root", None)
        .await
        .unwrap();
    let child = store
        .create_folder(&actor, organization, "child", Some(&root.id))
        .await
        .unwrap();
    let leaf = store
        .create_folder(&actor, organization, "leaf", Some(&child.id))
        .await
        .unwrap();
    let aside = store
        .create_folder(&actor, organization, "aside", None)
        .await
        .unwrap();
    for (name, folder) in [
        ("top", Some(&root)),
        ("deep", Some(&leaf)),
        ("aside", Some(&aside)),
        ("loose", None),
    ] {
        let draft = draft("empty");
        let folder_id = folder.map(|folder| folder.id.as_str());
        let new = NewWorkflow {
            name,
            description: None,
            team_id: None,
            folder_id,
            draft: &draft,
        };
        store.create_workflow(&actor, organization, &new).await.unwrap();
    }
    let within = |folder_id: &str| WorkflowFilter {
        folder_id: Some(folder_id.to_owned()),
        ..WorkflowFilter::default()
    };
    assert_eq!(found(fixture, &within(&root.id)).await, set(&["top", "deep"]));
    assert_eq!(found(fixture, &within(&child.id)).await, set(&["deep"]));
    assert_eq!(found(fixture, &within("folder_none")).await, set(&[]));
}

async fn tags_match_any_or_all(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let red = store
        .create_tag(&actor, organization, "red", "#f00")
        .await
        .unwrap();
    let blue = store
        .create_tag(&actor, organization, "blue", "#00f")
        .await
        .unwrap();
    let names: Vec<String> = store
        .list_tags(organization)
        .await
        .unwrap()
        .into_iter()
        .map(|tag| tag.name)
        .collect();
    assert_eq!(names, ["blue", "red"]);
    for (name, tags) in [("both", &[&red, &blue][..]), ("one", &[&red]), ("none", &[])] {
        let workflow = fixture.workflow(name).await;
        let ids: Vec<&str> = tags.iter().map(|tag| tag.id.as_str()).collect();
        store
            .set_workflow_tags(&actor, organization, &workflow.id, &ids)
            .await
            .unwrap();
        assert_eq!(store.workflow_tags(&workflow.id).await.unwrap().len(), ids.len());
        let unknown = store
            .set_workflow_tags(&actor, organization, &workflow.id, &["tag_\"none"])
            .await;
        assert!(unknown.is_err());
        assert_eq!(
            store.workflow_tags(&workflow.id).await.unwrap().len(),
            ids.len(),
            "refused as a whole"
        );
    }
    let with = |all| {
        let tag_ids = vec![red.id.clone(), blue.id.clone()];
        WorkflowFilter {
            tags: Some(TagFilter { tag_ids, all }),
            ..WorkflowFilter::default()
        }
    };
    assert_eq!(found(fixture, &with(false)).await, set(&["both", "one"]));
    assert_eq!(found(fixture, &with(true)).await, set(&["both"]));
    let listed = store
        .list_workflows(organization, &with(true), OLDEST, None, 1)
        .await
        .unwrap();
    assert_eq!(listed[0].tag_ids, [red.id.clone(), blue.id.clone()]);
}

async fn a_position_of_another_sort_finds_nothing(fixture: &Fixture) {
    fixture.workflow("one").await;
    let position = Position {
        value: "not a number".to_owned(),
        id: String::new(),
    };
    let page = fixture
        .store
        .list_workflows(
            fixture.organization_id(),
            &WorkflowFilter::default(),
            OLDEST,
            Some(&position),
            10,
        )
        .await
        .unwrap();
    assert!(page.is_empty());
}
