//! Push configurations.

use super::response::acknowledged;
use super::{A2aClient, ClientError};
use crate::model::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
};
use crate::v03;
use crate::version::ProtocolVersion;

/// Most pages that are read of one task's configurations.
const MOST_PAGES: usize = 100;

/// Push configurations. Agents that do not offer them answer with -32003.
impl A2aClient {
    /// Has a task's updates pushed to an address; returns the configuration with the id that it got.
    pub async fn create_push_config(
        &self,
        task: &str,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        config.task_id = Some(task.to_owned());
        match agreed.version {
            ProtocolVersion::V1_0 => {
                agreed.fill_tenant(&mut config.tenant);
                self.call(&agreed, "CreateTaskPushNotificationConfig", &config, limit).await
            }
            ProtocolVersion::V0_3 => {
                let (method, params) =
                    ("tasks/pushNotificationConfig/set", v03::TaskPushConfig::from(config));
                self.call::<v03::TaskPushConfig>(&agreed, method, &params, limit).await.map(Into::into)
            }
        }
    }

    /// One configuration of a task.
    pub async fn push_config(&self, task: &str, id: &str) -> Result<TaskPushNotificationConfig, ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        match agreed.version {
            ProtocolVersion::V1_0 => {
                let (tenant, task_id, id) = (agreed.tenant.clone(), task.to_owned(), id.to_owned());
                let request = GetTaskPushNotificationConfigRequest { tenant, task_id, id };
                self.call(&agreed, "GetTaskPushNotificationConfig", &request, limit).await
            }
            ProtocolVersion::V0_3 => {
                let (method, params) = ("tasks/pushNotificationConfig/get", old_params(task, id));
                self.call::<v03::TaskPushConfig>(&agreed, method, &params, limit).await.map(Into::into)
            }
        }
    }

    /// All configurations of a task, page by page up to 100.
    pub async fn push_configs(&self, task: &str) -> Result<Vec<TaskPushNotificationConfig>, ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        if agreed.version == ProtocolVersion::V0_3 {
            let params = v03::TaskIdParams { id: task.to_owned(), metadata: None };
            let method = "tasks/pushNotificationConfig/list";
            let configs: Vec<v03::TaskPushConfig> = self.call(&agreed, method, &params, limit).await?;
            return Ok(configs.into_iter().map(Into::into).collect());
        }
        let (tenant, task_id) = (agreed.tenant.clone(), task.to_owned());
        let mut request = ListTaskPushNotificationConfigsRequest { tenant, task_id, ..Default::default() };
        let mut configs = Vec::new();
        for _ in 0..MOST_PAGES {
            let method = "ListTaskPushNotificationConfigs";
            let page: ListTaskPushNotificationConfigsResponse =
                self.call(&agreed, method, &request, limit).await?;
            configs.extend(page.configs);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = Some(page.next_page_token);
        }
        Ok(configs)
    }

    /// Ends the pushing that a configuration began. One that is gone already is no failure in 1.0.
    pub async fn delete_push_config(&self, task: &str, id: &str) -> Result<(), ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        let read = |body: &bytes::Bytes| acknowledged(body);
        match agreed.version {
            ProtocolVersion::V1_0 => {
                let (tenant, task_id, id) = (agreed.tenant.clone(), task.to_owned(), id.to_owned());
                let request = DeleteTaskPushNotificationConfigRequest { tenant, task_id, id };
                self.answer(&agreed, "DeleteTaskPushNotificationConfig", &request, limit, read).await
            }
            ProtocolVersion::V0_3 => {
                let (method, params) = ("tasks/pushNotificationConfig/delete", old_params(task, id));
                self.answer(&agreed, method, &params, limit, read).await
            }
        }
    }
}

fn old_params(task: &str, id: &str) -> v03::PushConfigParams {
    v03::PushConfigParams {
        id: task.to_owned(),
        push_notification_config_id: Some(id.to_owned()),
        metadata: None,
    }
}
