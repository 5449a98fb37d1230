//! Custom functions: JavaScript that expressions call by name, checked where it is saved.

use std::collections::HashSet;

use contract::scope::{FunctionRead, FunctionWrite};
use contract::v1::{self, ErrorReason};
use contract::validation::Violation;
use wire::cursor::Pages;

use super::change::Change;
use super::reference::unresolvable;
use super::{Services, given, page_size, service};
use crate::auth::{Authorized, Call, KeyHolder};
use crate::error::{Error, Result};
use crate::javascript::{self, CodeProblem};
use crate::store::{Function, FunctionChange, FunctionSaved, NewFunction};

const DEFAULT_PAGE: i64 = 50;

pub(super) struct Functions {
    services: Services,
}

contract::function_service_methods!(service, Functions);

impl Functions {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_functions(
        &self,
        caller: Authorized<FunctionRead>,
        request: v1::ListFunctionsRequest,
    ) -> Result<v1::ListFunctionsResponse> {
        let pages = Pages::of(&["functions", &request.q]);
        let after: Option<String> = pages.position(&request.cursor)?;
        let size = page_size(request.limit, DEFAULT_PAGE);
        let mut rows = self
            .services
            .store
            .list_functions(
                caller.organization_id(),
                given(&request.q),
                after.as_deref(),
                size + 1,
            )
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| last.id.clone());
        let data = rows.into_iter().map(summary).collect();
        Ok(v1::ListFunctionsResponse { data, next_cursor })
    }

    async fn create_function(
        &self,
        caller: Authorized<FunctionWrite>,
        request: v1::CreateFunctionRequest,
    ) -> Result<v1::CreateFunctionResponse> {
        check_name(&request.name)?;
        check_code(&request.parameters, &request.code).await?;
        require_feature(&caller)?;
        let new = NewFunction {
            name: &request.name,
            description: request.description.as_deref(),
            code: &request.code,
            parameters: &stored_parameters(&request.parameters)?,
            folder_id: request.folder_id.as_deref(),
            team_id: request.team_id.as_deref(),
        };
        let store = &self.services.store;
        let created = store
            .create_function(&caller.actor(), caller.organization_id(), &new)
            .await;
        Ok(v1::CreateFunctionResponse {
            data: Some(saved(created.map_err(unresolvable)?)?),
        })
    }

    async fn get_function(
        &self,
        caller: Authorized<FunctionRead>,
        request: v1::GetFunctionRequest,
    ) -> Result<v1::GetFunctionResponse> {
        let store = &self.services.store;
        let function = store.function(caller.organization_id(), &request.id).await?;
        Ok(v1::GetFunctionResponse {
            data: Some(full(function)?),
        })
    }

    async fn update_function(
        &self,
        caller: Authorized<FunctionWrite>,
        request: v1::UpdateFunctionRequest,
    ) -> Result<v1::UpdateFunctionResponse> {
        let change = change(&request)?;
        change.name.as_deref().map_or(Ok(()), check_name)?;
        let store = &self.services.store;
        let before = store.function(caller.organization_id(), &request.id).await?;
        if change.code.is_some() || change.parameters.is_some() {
            // Code and parameters must fit together as they will be.
            let code = change.code.as_ref().unwrap_or(&before.code);
            let parameters = match &change.parameters {
                Some(_) => request.parameters.clone(),
                None => parameters(&before)?,
            };
            check_code(&parameters, code).await?;
        }
        require_feature(&caller)?;
        let updated = store
            .update_function(&caller.actor(), caller.organization_id(), &request.id, &change)
            .await;
        Ok(v1::UpdateFunctionResponse {
            data: Some(saved(updated.map_err(unresolvable)?)?),
        })
    }
}

fn require_feature(caller: &Call<KeyHolder>) -> Result<()> {
    if caller.organization().plan.custom_functions {
        return Ok(());
    }
    Err(Error::new(
        ErrorReason::FeatureNotInPlan,
        "The plan has no custom functions; change the plan to save them.",
    ))
}

fn check_name(name: &str) -> Result<()> {
    if engine::expression::is_reserved(name) {
        return Err(Error::invalid(
            "name",
            "means something else in expressions; choose another",
        ));
    }
    Ok(())
}

/// Checks that parameters and code make a function. Parsing takes a while for long code, so it has a thread of its own.
async fn check_code(parameters: &[v1::FunctionParameter], code: &str) -> Result<()> {
    let names: Vec<String> = parameters
        .iter()
        .map(|parameter| parameter.name.clone())
        .collect();
    let code = code.to_owned();
    let checked = tokio::task::spawn_blocking(move || {
        let violations = parameter_violations(&names)?;
        if !violations.is_empty() {
            return Ok(violations);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match javascript::check_function(&names, &code) {
            Ok(()) => Ok(Vec::new()),
            Err(CodeProblem::Engine(error)) => Err(CodeProblem::Engine(error)),
            Err(problem) => Ok(vec![Violation {
                path: "code".to_owned(),
                message: format!("is not a JavaScript function: {problem}"),
            }]),
        }
    });
    let violations = checked.await.map_err(Error::internal)?.map_err(Error::internal)?;
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::violations(violations))
}

fn parameter_violations(names: &[String]) -> Result<Vec<Violation>, CodeProblem> {
    let mut seen = HashSet::new();
    let mut violations = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let message = if !seen.insert(name) {
            "names a parameter that is in the list already"
        } else if !javascript::is_parameter_name(name)? {
            "is a word of JavaScript; choose another"
        } else {
            continue;
        };
        violations.push(Violation {
            path: format!("parameters[{place}].name"),
            message: message.to_owned(),
        });
    }
    Ok(violations)
}

fn change(request: &v1::UpdateFunctionRequest) -> Result<FunctionChange> {
    let mask = request.update_mask.as_ref();
    let names = ["name", "code", "description", "parameters", "folder_id"];
    let change = Change::new(mask, &names)?;
    let given = !request.parameters.is_empty() || mask.is_some();
    let parameters = change.set("parameters", given.then_some(&request.parameters))?;
    Ok(FunctionChange {
        name: change.set("name", request.name.clone())?,
        description: change.set_or_clear("description", request.description.clone()),
        code: change.set("code", request.code.clone())?,
        parameters: parameters
            .map(|parameters| stored_parameters(parameters))
            .transpose()?,
        folder_id: change.set_or_clear("folder_id", request.folder_id.clone()),
    })
}

fn stored_parameters(parameters: &[v1::FunctionParameter]) -> Result<Vec<u8>> {
    serde_json::to_vec(parameters).map_err(Error::internal)
}

fn parameters(function: &Function) -> Result<Vec<v1::FunctionParameter>> {
    serde_json::from_slice(&function.parameters).map_err(Error::internal)
}

fn saved(saved: FunctionSaved) -> Result<v1::Function> {
    match saved {
        FunctionSaved::Saved(function) => full(function),
        FunctionSaved::NameTaken => Err(Error::invalid(
            "name",
            "is the name of another function; choose another",
        )),
    }
}

fn summary(function: Function) -> v1::FunctionSummary {
    v1::FunctionSummary {
        id: function.id,
        name: function.name,
        description: function.description,
    }
}

fn full(function: Function) -> Result<v1::Function> {
    Ok(v1::Function {
        parameters: parameters(&function)?,
        id: function.id,
        name: function.name,
        description: function.description,
        code: function.code,
        folder_id: function.folder_id,
        team_id: function.team_id,
    })
}
